/* SPDX-License-Identifier: Apache-2.0 */
/* mpi.c - ranks over MPI: the only file that includes mpi.h. It is a plug-in of its own (docs/decisions/0027-mpi.md).
 *
 *   tag MESSAGE   whole messages, in pieces of at most 1 GiB since MPI counts with int
 *   tag ALARM     one empty message to every other rank: the sender has failed
 *
 * Waits do not spin: a rank that waits for rank 0 to finish its part leaves the core to others on the same node. A
 * request is tested, then the thread sleeps, 20 microseconds at first and up to 2 milliseconds. The wait also ends when
 * the program was told to stop, so that a launcher's SIGTERM after the death of a rank lets the others remove their
 * temporary files. */
#include "mpi/plugin.h"

#include <mpi.h>
#include <stdlib.h>
#include <time.h>

enum { MESSAGE = 1, ALARM = 2 };
enum { SLEEP_MIN = 20000, SLEEP_MAX = 2000000 }; /* nanoseconds */
enum { GIVE_UP = 250 };                          /* tests of a cancelled request: half a second */
#define PIECE ((size_t)1 << 30)

static struct {
    MPI_Comm comm;
    const volatile sig_atomic_t *stop;
    int rank, size;
    int heard; /* an alarm */
} world;

/* Ends a request after a stop: its buffer belongs to the caller, who wipes and frees it. A receive is cancelled, so
 * that no network card writes there later; MPI ends it without the other rank, unless the message is half here and its
 * sender is dead, and then the wait is given up. A send cannot be taken back and only reads. No call of MPI follows
 * (close_ranks), so neither goes on by itself. */
static void give_up(MPI_Request *request, int sends)
{
    const struct timespec pause = {0, SLEEP_MAX};
    int done = 0;
    if (!sends && MPI_Cancel(request) == MPI_SUCCESS)
        for (int i = 0; i < GIVE_UP; i++) {
            if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done) break;
            nanosleep(&pause, NULL);
        }
    if (!done) MPI_Request_free(request);
}

static fkt_status wait_for(MPI_Request *request, int sends)
{
    struct timespec pause = {0, SLEEP_MIN};
    int done = 0;
    for (;;) {
        if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return FKT_E_IO;
        if (done) return FKT_OK;
        if (*world.stop) break;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < SLEEP_MAX) pause.tv_nsec *= 2;
    }
    give_up(request, sends);
    return FKT_E_STOPPED;
}

/* One message in pieces: to rank `other` from `out`, or where `out` is NULL from it into `in`. An empty message is one
 * empty piece. */
static fkt_status carry(uint32_t other, const char *out, char *in, size_t n)
{
    size_t at = 0;
    do {
        const int piece = (int)(n - at < PIECE ? n - at : PIECE);
        MPI_Request request;
        fkt_status st;
        const int code = out ? MPI_Isend(out + at, piece, MPI_BYTE, (int)other, MESSAGE, world.comm, &request)
                             : MPI_Irecv(in + at, piece, MPI_BYTE, (int)other, MESSAGE, world.comm, &request);
        if (code != MPI_SUCCESS) return FKT_E_IO;
        st = wait_for(&request, out != NULL);
        if (st != FKT_OK) return st;
        at += (size_t)piece;
    } while (at < n);
    return FKT_OK;
}

static fkt_status send_to(void *self, uint32_t to, const void *bytes, size_t n)
{
    static const char empty[1];
    (void)self;
    return carry(to, n ? bytes : empty, NULL, n);
}

static fkt_status recv_from(void *self, uint32_t from, void *bytes, size_t n)
{
    (void)self;
    return carry(from, NULL, bytes, n);
}

static void alarm_all(void *self)
{
    (void)self;
    for (int to = 0; to < world.size; to++) {
        MPI_Request request;
        if (to != world.rank && MPI_Isend(NULL, 0, MPI_BYTE, to, ALARM, world.comm, &request) == MPI_SUCCESS)
            MPI_Request_free(&request); /* an empty message needs nobody to wait for it */
    }
}

static int alarmed(void *self)
{
    int there = 0;
    (void)self;
    if (!world.heard && MPI_Iprobe(MPI_ANY_SOURCE, ALARM, world.comm, &there, MPI_STATUS_IGNORE) == MPI_SUCCESS)
        world.heard = there;
    return world.heard;
}

static int open_ranks(struct fkt_ranks *out, const volatile sig_atomic_t *stop)
{
    int provided;
    world.stop = stop;
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS ||
        provided < MPI_THREAD_SERIALIZED || MPI_Comm_dup(MPI_COMM_WORLD, &world.comm) != MPI_SUCCESS ||
        MPI_Comm_set_errhandler(world.comm, MPI_ERRORS_RETURN) != MPI_SUCCESS ||
        MPI_Comm_rank(world.comm, &world.rank) != MPI_SUCCESS || MPI_Comm_size(world.comm, &world.size) != MPI_SUCCESS)
        return 0;
    *out = (struct fkt_ranks){.rank = (uint32_t)world.rank,
                              .size = (uint32_t)world.size,
                              .send = send_to,
                              .recv = recv_from,
                              .alarm = alarm_all,
                              .alarmed = alarmed};
    return 1;
}

/* Alarms that nobody looked at are received, so that nothing is under way when MPI ends. */
static void close_ranks(struct fkt_ranks *ranks, int lost, int code)
{
    int there = 1;
    (void)ranks;
    if (lost && *world.stop) return; /* the launcher ends this process, and has said why */
    if (lost) MPI_Abort(world.comm, code);
    MPI_Barrier(world.comm); /* every alarm was sent before its sender's last message */
    while (MPI_Iprobe(MPI_ANY_SOURCE, ALARM, world.comm, &there, MPI_STATUS_IGNORE) == MPI_SUCCESS && there)
        MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, ALARM, world.comm, MPI_STATUS_IGNORE);
    MPI_Comm_free(&world.comm);
    MPI_Finalize();
}

extern const struct fkt_mpi_plugin fkt_mpi_v1;
FKT_API const struct fkt_mpi_plugin fkt_mpi_v1 = {open_ranks, close_ranks};
