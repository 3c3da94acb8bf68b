/* A disk that fails on request: loaded by LD_PRELOAD, it lets calls on files fail or stall.

   The file named by FAILING_DISK says how, one line for each fault, read anew at every call:

       fdatasync EIO 0 us-east-1b-1/log       every fdatasync of a file whose path holds this text fails
       fdatasync stall 10 us-east-1b-1/log    it takes 10 s longer, or until the line is gone

   Calls: fdatasync (fsync counts as one), pwrite, fallocate, pread. Failures: EIO, ENOSPC. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define CONTROL_BYTES 4096
#define STEP_NANOSECONDS 50000000L

static int path_of(int fd, char *path, size_t size)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, size - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return 1;
}

/* The line for this call on this path: its action and seconds; 0 if there is none. */
static int fault_for(const char *call, const char *path, char *action, double *seconds)
{
    const char *name = getenv("FAILING_DISK");
    char control[CONTROL_BYTES], what[32], text[512];
    int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return 0;
    /* Not through our own pread. */
    ssize_t length = syscall(SYS_read, fd, control, sizeof control - 1);
    close(fd);
    if (length <= 0)
        return 0;
    control[length] = 0;
    char *rest;
    for (char *line = strtok_r(control, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (sscanf(line, "%31s %31s %lf %511s", what, action, seconds, text) == 4 && !strcmp(what, call) && strstr(path, text))
            return 1;
    return 0;
}

/* 0, or the error that the call is to fail with, once any stall is over. */
static int fate(const char *call, int fd)
{
    char path[1024], action[32];
    double seconds, waited = 0;
    int kept = errno, error = 0;
    if (path_of(fd, path, sizeof path)) {
        while (fault_for(call, path, action, &seconds)) {
            if (!strcmp(action, "EIO"))
                error = EIO;
            else if (!strcmp(action, "ENOSPC"))
                error = ENOSPC;
            if (error || waited >= seconds)
                break;
            struct timespec step = {0, STEP_NANOSECONDS};
            nanosleep(&step, NULL);
            waited += STEP_NANOSECONDS / 1e9;
        }
    }
    errno = kept;
    return error;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL_IF(call, fd) do { int error = fate(call, fd); if (error) { errno = error; return -1; } } while (0)

int fdatasync(int fd) { FAIL_IF("fdatasync", fd); return REAL(fdatasync)(fd); }
int fsync(int fd) { FAIL_IF("fdatasync", fd); return REAL(fsync)(fd); }

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { FAIL_IF("pwrite", fd); return REAL(pwrite)(fd, data, size, at); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { FAIL_IF("pwrite", fd); return REAL(pwrite64)(fd, data, size, at); }
ssize_t pread(int fd, void *data, size_t size, off_t at) { FAIL_IF("pread", fd); return REAL(pread)(fd, data, size, at); }
ssize_t pread64(int fd, void *data, size_t size, off64_t at) { FAIL_IF("pread", fd); return REAL(pread64)(fd, data, size, at); }

int posix_fallocate(int fd, off_t at, off_t size)
{
    int error = fate("fallocate", fd);
    return error ? error : REAL(posix_fallocate)(fd, at, size);
}

int posix_fallocate64(int fd, off64_t at, off64_t size)
{
    int error = fate("fallocate", fd);
    return error ? error : REAL(posix_fallocate64)(fd, at, size);
}
