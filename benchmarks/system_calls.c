/* Counts, logs and spoils the calls by which a process reads and changes files below a folder.

   Preloaded (LD_PRELOAD) by system_calls.py, which arms it in a forked child: the call with a
   chosen number then kills the process before, in the middle of or after it, or fails. A line of
   the log is

       number op result flags offset size \t path \t other path \n   and `size` bytes of what was
                                                                     written

   `other` is where a rename goes, or what an opened name turned out to be.
   What the C library calls inside itself (fopen, readdir, stat) is not seen. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum fault { NONE, KILL_BEFORE, KILL_HALF, KILL_AFTER, NO_SPACE, IO_ERROR };
enum need { SPACE = 1, CHANGE = 2 }; /* does the call need space; does it change what is stored? */
enum verdict { IGNORE, GO, FAIL, HALF };

static char root[PATH_MAX];
static size_t root_length;
static long armed, count, number, whole_data;
static int fault, log_to = -1;
static __thread long mine; /* the number of this thread's call */

void hopscope_arm(const char *folder, long which, int what, int log_file, int with_data)
{
    root_length = strlen(strcpy(root, folder));
    number = which, fault = what, log_to = log_file, whole_data = with_data, count = 0;
    armed = 1;
}

long hopscope_count(void) { return count; }
void hopscope_disarm(void) { armed = 0; }

static void die(void)
{
    syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
}

static int below(const char *path)
{
    return !strncmp(path, root, root_length)
        && (path[root_length] == '/' || !path[root_length] || root[root_length - 1] == '/');
}

static void of_file(int file, char *path)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = 0;
}

/* The absolute name, as it was asked for. */
static void of_name(int folder, const char *name, char *path)
{
    char start[PATH_MAX] = "";
    if (name[0] == '/') {
        snprintf(path, PATH_MAX, "%s", name);
        return;
    }
    if (folder == AT_FDCWD) {
        if (!getcwd(start, sizeof start)) start[0] = 0;
    } else
        of_file(folder, start);
    if (snprintf(path, PATH_MAX, "%s/%s", start, name) >= PATH_MAX) path[PATH_MAX - 1] = 0;
}

static enum verdict begin(const char *path, const char *other, int needs)
{
    if (!armed || !(below(path) || (other && below(other)))) return IGNORE;
    mine = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
    if (fault == NO_SPACE && mine >= number && (needs & SPACE)) {
        errno = ENOSPC; /* for as long as the process lives; the first write gets half through */
        return mine == number ? HALF : FAIL;
    }
    if (mine != number) return GO;
    if (fault == KILL_BEFORE) die();
    if (fault == KILL_HALF) return HALF;
    if (fault == IO_ERROR) {
        errno = EIO;
        return FAIL;
    }
    return GO;
}

struct call {
    const char *op, *path, *other;
    long flags, offset;
    const void *data;
};

static long end(long result, struct call call)
{
    int kept = errno;
    if (armed && log_to >= 0 && result >= 0) {
        char head[2 * PATH_MAX + 200];
        size_t size = call.data && whole_data ? (size_t)result : 0;
        int length = snprintf(head, sizeof head, "%ld %s %ld %ld %ld %zu\t%s\t%s\n", mine, call.op,
                              result, call.flags, call.offset, size, call.path,
                              call.other ? call.other : "");
        struct iovec parts[2] = {{head, length}, {(void *)call.data, size}};
        syscall(SYS_writev, log_to, parts, 2);
    }
    if (fault == KILL_AFTER && mine == number) die();
    errno = kept;
    return result;
}

#define HALVED(verdict) ((verdict) == HALF && fault == KILL_HALF ? die() : (void)0)

/* Calls on names that either happen or do not: in the middle of them is before them. */
#define ON_NAMES(OP, PATH, OTHER, FLAGS, NEEDS, CALL)                                             \
    switch (begin(PATH, OTHER, NEEDS)) {                                                          \
    case IGNORE: return CALL;                                                                     \
    case HALF: HALVED(HALF); return -1;                                                           \
    case FAIL: return -1;                                                                         \
    default: break;                                                                               \
    }                                                                                             \
    return end(CALL, (struct call){OP, PATH, OTHER, FLAGS, 0, NULL});

static int opened(int folder, const char *name, int flags, mode_t mode)
{
    char path[PATH_MAX], real[PATH_MAX] = "";
    of_name(folder, name, path);
    int creates = flags & O_CREAT && faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW);
    int needs = creates ? SPACE | CHANGE : flags & O_TRUNC ? CHANGE : 0;
    enum verdict verdict = begin(path, NULL, needs);
    HALVED(verdict);
    if (verdict == FAIL || verdict == HALF) return -1;
    int file = syscall(SYS_openat, folder, name, flags, mode);
    if (verdict == IGNORE || file < 0) return file;
    of_file(file, real);
    const char *op = creates ? "create" : flags & O_TRUNC ? "truncate" : "open";
    return end(file, (struct call){op, path, real, flags, 0, NULL});
}

#define MODE(flags)                                                                               \
    mode_t mode = 0;                                                                              \
    if (flags & (O_CREAT | __O_TMPFILE)) {                                                        \
        va_list rest;                                                                             \
        va_start(rest, flags);                                                                    \
        mode = va_arg(rest, mode_t);                                                              \
        va_end(rest);                                                                             \
    }

int open(const char *name, int flags, ...) { MODE(flags) return opened(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE(flags) return opened(AT_FDCWD, name, flags, mode); }
int openat(int folder, const char *name, int flags, ...) { MODE(flags) return opened(folder, name, flags, mode); }
int openat64(int folder, const char *name, int flags, ...) { MODE(flags) return opened(folder, name, flags, mode); }

static ssize_t written(int file, const void *data, size_t size, long at)
{
    char path[PATH_MAX];
    enum verdict verdict = IGNORE;
    if (armed) {
        of_file(file, path);
        verdict = begin(path, NULL, SPACE | CHANGE);
    }
    if (verdict == FAIL) return -1;
    long offset = at >= 0 || verdict == IGNORE ? at : syscall(SYS_lseek, file, 0, SEEK_CUR);
    if (verdict == HALF && fault == NO_SPACE && size < 2) return -1;
    size_t much = verdict == HALF ? size / 2 : size;
    ssize_t done = at < 0 ? syscall(SYS_write, file, data, much)
                          : syscall(SYS_pwrite64, file, data, much, at);
    HALVED(verdict);
    return verdict == IGNORE ? done : end(done, (struct call){"write", path, "", 0, offset, data});
}

ssize_t write(int file, const void *data, size_t size) { return written(file, data, size, -1); }
ssize_t pwrite(int file, const void *data, size_t size, off_t at) { return written(file, data, size, at); }
ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) { return written(file, data, size, at); }

static ssize_t got(int file, void *data, size_t size, long at)
{
    char path[PATH_MAX];
    enum verdict verdict = IGNORE;
    if (armed) {
        of_file(file, path);
        verdict = begin(path, NULL, 0);
    }
    if (verdict == FAIL || verdict == HALF) return -1;
    ssize_t done = at < 0 ? syscall(SYS_read, file, data, size)
                          : syscall(SYS_pread64, file, data, size, at);
    return verdict == IGNORE ? done : end(done, (struct call){"read", path, "", 0, at, NULL});
}

ssize_t read(int file, void *data, size_t size) { return got(file, data, size, -1); }
ssize_t pread(int file, void *data, size_t size, off_t at) { return got(file, data, size, at); }
ssize_t pread64(int file, void *data, size_t size, off64_t at) { return got(file, data, size, at); }

#define ON_FILE(OP, FLAGS, NEEDS, CALL)                                                           \
    if (!armed) return CALL;                                                                      \
    char path[PATH_MAX];                                                                          \
    of_file(file, path);                                                                          \
    ON_NAMES(OP, path, NULL, FLAGS, NEEDS, CALL)

int fsync(int file) { ON_FILE("fsync", 0, CHANGE, syscall(SYS_fsync, file)) }
int fdatasync(int file) { ON_FILE("fsync", 0, CHANGE, syscall(SYS_fdatasync, file)) }
int ftruncate(int file, off_t size) { ON_FILE("resize", size, CHANGE, syscall(SYS_ftruncate, file, size)) }
int ftruncate64(int file, off64_t size) { ON_FILE("resize", size, CHANGE, syscall(SYS_ftruncate, file, size)) }
int flock(int file, int how) { ON_FILE("flock", how, 0, syscall(SYS_flock, file, how)) }

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
    char path[PATH_MAX], other[PATH_MAX];
    of_name(from, old, path), of_name(to, new, other);
    ON_NAMES("rename", path, other, flags, SPACE | CHANGE, syscall(SYS_renameat2, from, old, to, new, flags))
}
int rename(const char *old, const char *new) { return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0); }
int renameat(int from, const char *old, int to, const char *new) { return renameat2(from, old, to, new, 0); }

int linkat(int from, const char *old, int to, const char *new, int flags)
{
    char path[PATH_MAX], other[PATH_MAX];
    of_name(from, old, path), of_name(to, new, other);
    ON_NAMES("link", path, other, flags, SPACE | CHANGE, syscall(SYS_linkat, from, old, to, new, flags))
}
int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }

int unlinkat(int folder, const char *name, int flags)
{
    char path[PATH_MAX];
    of_name(folder, name, path);
    const char *op = flags & AT_REMOVEDIR ? "rmdir" : "unlink";
    ON_NAMES(op, path, NULL, flags, CHANGE, syscall(SYS_unlinkat, folder, name, flags))
}
int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int mkdirat(int folder, const char *name, mode_t mode)
{
    char path[PATH_MAX];
    of_name(folder, name, path);
    ON_NAMES("mkdir", path, NULL, mode, SPACE | CHANGE, syscall(SYS_mkdirat, folder, name, mode))
}
int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }
