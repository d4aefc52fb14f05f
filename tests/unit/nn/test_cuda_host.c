/* SPDX-License-Identifier: Apache-2.0 */
/* The emulation of tests/cuda_host itself: barriers, shuffles, captured graphs, memory that runs out, and kernels that
 * a card would not forgive. */
#include "tests/support/check.h"

#ifdef FKT_CUDA_HOST
#include "cuda_host.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

struct arguments {
    int *out;
    int how;
};

static void launch(void (*body)(const void *), unsigned blocks, unsigned threads, int *out, int how, cudaStream_t s)
{
    struct arguments a = {out, how};
    fkt_host_dim3 grid = {blocks, 1, 1}, block = {threads, 1, 1};
    fkt_host_launch_c("test", grid, block, 1024, s, body, &a, sizeof a);
}

/* Each thread gives its number to the next one through shared memory, three times. */
static void rotate(const void *p)
{
    const struct arguments *a = p;
    int *shared = fkt_host_shared(), mine = (int)fkt_host_thread.x;
    for (int i = 0; i < 3; i++) {
        shared[fkt_host_thread.x] = mine;
        fkt_host_barrier();
        mine = shared[(fkt_host_thread.x + 1) % fkt_host_threads.x];
        fkt_host_barrier();
    }
    a->out[fkt_host_block.x * fkt_host_threads.x + fkt_host_thread.x] = mine;
}

/* The sum of a warp's lanes by five shuffles. */
static void warp_sum(const void *p)
{
    const struct arguments *a = p;
    uint64_t sum = fkt_host_thread.x;
    for (unsigned with = 16; with; with /= 2) sum += fkt_host_exchange(sum, (fkt_host_thread.x % 32) ^ with);
    a->out[fkt_host_thread.x] = (int)sum;
}

static void test_barriers_and_shuffles(void **state)
{
    int out[256];
    (void)state;
    for (int reverse = 0; reverse < 2; reverse++) {
        fkt_host_machine.reverse = reverse;
        memset(out, 0, sizeof out);
        launch(rotate, 2, 100, out, 0, NULL);
        for (int i = 0; i < 200; i++) assert_int_equal(out[i], (i % 100 + 3) % 100);
        launch(warp_sum, 1, 64, out, 0, NULL);
        for (int i = 0; i < 64; i++) assert_int_equal(out[i], i < 32 ? 496 : 496 + 32 * 32);
    }
    fkt_host_machine.reverse = 0;
}

static void misuse(const void *p)
{
    const struct arguments *a = p;
    unsigned t = fkt_host_thread.x;
    if (a->how == 0 && t < 5) fkt_host_barrier();             /* not all reach it */
    if (a->how == 1 && t != 3) (void)fkt_host_exchange(1, 0); /* not the whole warp */
    if (a->how == 2 && t < 32) fkt_host_barrier();            /* different ones */
    if (a->how == 2 && t >= 32) (void)fkt_host_exchange(1, 0), fkt_host_barrier(), fkt_host_barrier();
    if (a->how == 3) (void)fkt_host_exchange(1, 0); /* in a block of 40 */
}

static void test_misuse_ends_the_process(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        int status = 0;
        pid_t child = fork();
        assert_true(child >= 0);
        if (!child) {
            if (!freopen("/dev/null", "w", stderr)) _exit(1);
            signal(SIGABRT, SIG_DFL); /* cmocka's handler would report it as a failed test */
            launch(misuse, 1, how == 3 ? 40 : 64, NULL, how, NULL);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFSIGNALED(status)) fail_msg("misuse %d was not noticed", how);
    }
}

static void count(const void *p)
{
    const struct arguments *a = p;
    if (fkt_host_thread.x == 0) a->out[0] += a->how;
}

/* While a stream is captured nothing runs; the graph runs everything, also what a joined stream was given. */
static void test_graphs(void **state)
{
    cudaStream_t one, two;
    cudaEvent_t fork_at, join_at;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    int n = 0, copy = -1;
    (void)state;
    assert_int_equal(cudaStreamCreate(&one) | cudaStreamCreate(&two), cudaSuccess);
    assert_int_equal(cudaEventCreate(&fork_at) | cudaEventCreate(&join_at), cudaSuccess);
    assert_int_equal(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    launch(count, 1, 32, &n, 1, one);
    assert_int_equal(cudaEventRecord(fork_at, one) | cudaStreamWaitEvent(two, fork_at, 0), cudaSuccess);
    launch(count, 1, 32, &n, 10, two);
    assert_int_equal(cudaEventRecord(join_at, two) | cudaStreamWaitEvent(one, join_at, 0), cudaSuccess);
    assert_int_equal(cudaMemcpyAsync(&copy, &n, sizeof n, cudaMemcpyDefault, one), cudaSuccess);
    assert_int_equal(cudaStreamSynchronize(one), cudaErrorStreamCaptureUnsupported);
    assert_int_equal(cudaStreamEndCapture(one, &graph), cudaSuccess);
    assert_int_equal(n, 0);
    assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    assert_int_equal(cudaGraphLaunch(exec, one) | cudaGraphLaunch(exec, one), cudaSuccess);
    assert_int_equal(n, 22);
    assert_int_equal(copy, 22);
    launch(count, 1, 32, &n, 100, two); /* no longer captured */
    assert_int_equal(n, 122);
    cudaGraphDestroy(graph), cudaGraphExecDestroy(exec);
    cudaEventDestroy(fork_at), cudaEventDestroy(join_at), cudaStreamDestroy(one), cudaStreamDestroy(two);
    (void)cudaGetLastError();
}

/* A capture in which nobody waits for the second stream's last work is refused, and both can be used again. */
static void test_a_stream_that_nobody_waits_for(void **state)
{
    cudaStream_t one, two;
    cudaEvent_t fork_at, join_at;
    cudaGraph_t graph;
    int n = 0;
    (void)state;
    assert_int_equal(cudaStreamCreate(&one) | cudaStreamCreate(&two), cudaSuccess);
    assert_int_equal(cudaEventCreate(&fork_at) | cudaEventCreate(&join_at), cudaSuccess);
    for (int late = 0; late < 2; late++) {
        assert_int_equal(cudaStreamBeginCapture(one, cudaStreamCaptureModeThreadLocal), cudaSuccess);
        assert_int_equal(cudaEventRecord(fork_at, one) | cudaStreamWaitEvent(two, fork_at, 0), cudaSuccess);
        launch(count, 1, 32, &n, 1, two);
        if (late) {
            assert_int_equal(cudaEventRecord(join_at, two) | cudaStreamWaitEvent(one, join_at, 0), cudaSuccess);
            launch(count, 1, 32, &n, 1, two);
        }
        assert_int_equal(cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureUnjoined);
        assert_null(graph);
    }
    launch(count, 1, 32, &n, 10, two);
    assert_int_equal(n, 10);
    cudaEventDestroy(fork_at), cudaEventDestroy(join_at), cudaStreamDestroy(one), cudaStreamDestroy(two);
    (void)cudaGetLastError();
}

static void test_limits(void **state)
{
    size_t before = fkt_host_memory_used(), room = fkt_host_machine.memory;
    void *p = NULL, *q = NULL;
    (void)state;
    fkt_host_machine.memory = before + 1000;
    assert_int_equal(cudaMalloc(&p, 600), cudaSuccess);
    assert_int_equal(cudaMalloc(&q, 600), cudaErrorMemoryAllocation);
    assert_null(q);
    assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    cudaFree(p);
    assert_int_equal(fkt_host_memory_used(), before);
    fkt_host_machine.memory = room;
    launch(count, 1, 2000, NULL, 0, NULL); /* too many threads */
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidConfiguration);
    fkt_host_machine.lost = cudaErrorECCUncorrectable;
    assert_int_equal(cudaDeviceSynchronize(), cudaErrorECCUncorrectable);
    fkt_host_machine.lost = cudaSuccess;
    (void)cudaGetLastError();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barriers_and_shuffles),
        cmocka_unit_test(test_misuse_ends_the_process),
        cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_a_stream_that_nobody_waits_for),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    printf("skipped: the emulation is for machines without a card\n");
    return 77;
}
#endif
