/* Whether AMX can be used on this processor and system. */

#include <sys/syscall.h>
#include <unistd.h>

#include "tiles.h"

enum { ASK = 0x1023, TILES = 18 }; /* ARCH_REQ_XCOMP_PERM of the system call arch_prctl, XFEATURE_XTILEDATA */

/* Requests AMX for all threads of this process; returns whether it may be used. Repeated calls do no harm.
   Call it only if the processor has AMX. A system that does not know the request refuses it. */
int hopscope_ask_for_tiles(void) {
#if WITH_TILES
    return syscall(SYS_arch_prctl, ASK, TILES) == 0;
#else
    return 0;
#endif
}
