/* What this processor, and its system, let us use. */

#include <sys/syscall.h>
#include <unistd.h>

#include "tiles.h"

enum { ASK = 0x1023, TILES = 18 }; /* ARCH_REQ_XCOMP_PERM of the system call arch_prctl, XFEATURE_XTILEDATA */

/* Whether AMX may be used from now on by every thread of this process. To ask twice does no harm. The
   processor must have it: the system says no to all that it does not know. */
int hopscope_ask_for_tiles(void) {
#if WITH_TILES
    return syscall(SYS_arch_prctl, ASK, TILES) == 0;
#else
    return 0;
#endif
}
