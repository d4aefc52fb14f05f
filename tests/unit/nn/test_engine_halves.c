/* SPDX-License-Identifier: Apache-2.0 */
/* Engines on a backend with begin and finish: in which order the halves come, how many workspaces there are, who waits,
 * and what is left after a failure of either half. The backend is one with loops: every number plus one, or every byte
 * by the table and back; it notes each call. */
#include "nn/engine.h"

#include "base/threads.h"
#include "tests/support/check.h"

#include <stdatomic.h>
#include <time.h>

enum { SIDE = 2, PLANE = SIDE * SIDE, EACH = 3 * PLANE, BATCH = 4, NOTES = 64 };

static atomic_int made, freed, begun, finished, under_way, most_under_way, misused;
static atomic_int fail_begin, fail_finish, memory; /* the how-manieth call fails; workspaces that fit; 0: none, all */
static unsigned limit;                             /* max_workspaces */
static int slow;
static char notes[NOTES]; /* of one thread: "b0b1f0..." */

struct plan {
    struct fkt_engine_spec spec;
};
struct work {
    atomic_int busy; /* a run is under way */
    size_t n;
    int number; /* of the begin */
    union {
        float number[BATCH * EACH];
        uint8_t byte[BATCH * EACH];
    } in;
};

static void note(char what, int number)
{
    const size_t n = strlen(notes);
    if (!slow && n + 3 < NOTES) snprintf(notes + n, NOTES - n, "%c%d", what, number);
}

static fkt_status plan_new(void **out, const struct fkt_net *net, const struct fkt_shape *shapes,
                           const struct fkt_weights *weights, const struct fkt_engine_spec *spec,
                           struct fkt_engine_facts *facts)
{
    struct plan *p = NULL;
    fkt_status st = fkt_alloc(&p, 1);
    (void)net, (void)shapes, (void)weights;
    if (st == FKT_OK) p->spec = *spec;
    facts->max_workspaces = limit;
    *out = p;
    return st;
}

static fkt_status workspace_new(void **out, const void *plan)
{
    struct work *w = NULL;
    fkt_status st;
    (void)plan;
    if (memory && made++ - freed >= memory) {
        made--;
        return fkt_fail(FKT_E_NOMEM, "the card is full");
    }
    st = fkt_alloc(&w, 1);
    if (!memory) made++;
    *out = w;
    return st;
}

static void workspace_free(void *workspace)
{
    freed++;
    fkt_free(workspace);
}

static fkt_status begin(const void *plan, void *workspace, const void *in, size_t n)
{
    const struct plan *p = plan;
    struct work *w = workspace;
    const int number = begun++;
    int now;
    if (atomic_exchange(&w->busy, 1)) misused++;
    if (number + 1 == fail_begin) {
        w->busy = 0;
        return fkt_fail(FKT_E_STATE, "begin %d failed", number);
    }
    w->n = n;
    w->number = number;
    memcpy(&w->in, in, n * EACH * (p->spec.pixels_in ? 1 : sizeof(float)));
    now = ++under_way;
    for (int most = most_under_way; now > most && !atomic_compare_exchange_weak(&most_under_way, &most, now);) {}
    note('b', number);
    return FKT_OK;
}

/* Bytes keep their order (n,H,W,3) here: the identity has no need of planes. */
static fkt_status finish(const void *plan, void *workspace, size_t n, void *out)
{
    const struct plan *p = plan;
    struct work *w = workspace;
    const int number = finished++;
    float x = 0;
    if (slow) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    if (!w->busy || w->n != n) misused++;
    note('f', w->number);
    for (size_t i = 0; i < n * EACH; i++) {
        x = p->spec.pixels_in ? p->spec.pixels_in[i % 3][w->in.byte[i]] : w->in.number[i] + 1;
        if (p->spec.bytes_out) ((uint8_t *)out)[i] = (uint8_t)x;
        else ((float *)out)[i] = x;
    }
    under_way--;
    w->busy = 0;
    return number + 1 == fail_finish ? fkt_fail(FKT_E_NUMERIC, "finish %d failed", number) : FKT_OK;
}

static const struct fkt_backend halves = {.name = "halves",
                                          .plan = plan_new,
                                          .workspace = workspace_new,
                                          .begin = begin,
                                          .finish = finish,
                                          .workspace_free = workspace_free,
                                          .plan_free = fkt_free};
static const struct fkt_backend byte_halves = {.name = "byte halves",
                                               .bytes = 1,
                                               .plan = plan_new,
                                               .workspace = workspace_new,
                                               .begin = begin,
                                               .finish = finish,
                                               .workspace_free = workspace_free,
                                               .plan_free = fkt_free};
static const struct fkt_engine_spec small = {.batch = BATCH, .height = SIDE, .width = SIDE};
static struct fkt_net net;

static int reset(void **state)
{
    (void)state;
    made = freed = begun = finished = under_way = most_under_way = misused = 0;
    fail_begin = fail_finish = memory = 0;
    limit = 0;
    slow = 0;
    notes[0] = '\0';
    fkt_net_init(&net, 3);
    return 0;
}

static int done(void **state)
{
    (void)state;
    fkt_net_clear(&net);
    return 0;
}

static struct fkt_engine *make(const struct fkt_backend *backend, const struct fkt_engine_spec *spec)
{
    struct fkt_engine *e = NULL;
    CHECK_OK(fkt_engine_new(&e, backend, &net, NULL, spec));
    return e;
}

static void end(struct fkt_engine *e)
{
    CHECK(!misused && !under_way);
    fkt_engine_free(e);
    CHECK(made == freed);
}

/* n images in one call, every number checked. */
static fkt_status ask(struct fkt_engine *e, size_t n, float start)
{
    float in[7 * BATCH * EACH] = {0}, out[7 * BATCH * EACH + 1];
    fkt_status st;
    for (size_t i = 0; i < n * EACH; i++) in[i] = start + (float)i;
    out[n * EACH] = -7;
    st = fkt_engine_run(e, in, n, out);
    for (size_t i = 0; st == FKT_OK && i < n * EACH; i++)
        if (!(out[i] == in[i] + 1)) return fkt_fail(FKT_E_MISMATCH, "number %zu of %zu images is wrong", i, n);
    return st == FKT_OK && !(out[n * EACH] == -7) ? fkt_fail(FKT_E_MISMATCH, "written beyond the end") : st;
}

static void a_batch_begins_before_the_last_one_ends(void **state)
{
    static const struct {
        size_t n;
        const char *order;
    } cases[] = {{1, "b0f0"},
                 {BATCH, "b0f0"},
                 {BATCH + 1, "b0b1f0f1"},
                 {3 * BATCH - 1, "b0b1f0b2f1f2"},
                 {4 * BATCH, "b0b1f0b2f1b3f2f3"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fkt_engine *e;
        reset(NULL);
        e = make(&halves, &small);
        CHECK_OK(ask(e, cases[i].n, 1));
        assert_string_equal(notes, cases[i].order);
        CHECK(made == (cases[i].n > BATCH ? 2 : 1));
        end(e);
    }
}

static void with_one_workspace_batches_come_one_by_one(void **state)
{
    struct fkt_engine *e;
    (void)state;
    limit = 1;
    e = make(&halves, &small);
    CHECK_OK(ask(e, 3 * BATCH, 1));
    assert_string_equal(notes, "b0f0b1f1b2f2");
    CHECK(made == 1);
    end(e);
}

static void a_card_that_is_full_gives_no_second_workspace(void **state)
{
    struct fkt_engine *e;
    (void)state;
    memory = 1;
    e = make(&halves, &small);
    CHECK_OK(ask(e, 3 * BATCH, 1));
    assert_string_equal(notes, "b0f0b1f1b2f2");
    CHECK_OK(ask(e, 2 * BATCH, 1));
    CHECK(made == 1);
    end(e);
    memory = 0;
    limit = 0;
    e = make(&halves, &small);
    made = freed = 0;
    memory = -1; /* not even one */
    CHECK_STATUS(ask(e, 1, 1), FKT_E_NOMEM);
    assert_string_equal(fkt_error_text(), "the card is full");
    memory = 0;
    CHECK_OK(ask(e, 1, 1));
    end(e);
}

/* Every call of every run fails once; nothing stays under way, and the next run is right. */
static void a_failure_of_either_half_leaves_nothing_under_way(void **state)
{
    const size_t n = 5 * BATCH - 1;
    char want[32];
    (void)state;
    for (unsigned workspaces = 1; workspaces <= 2; workspaces++)
        for (int half = 0; half < 2; half++)
            for (int call = 1; call <= 5; call++) {
                struct fkt_engine *e;
                reset(NULL);
                limit = workspaces;
                e = make(&halves, &small);
                *(half ? &fail_finish : &fail_begin) = call;
                CHECK_STATUS(ask(e, n, 1), half ? FKT_E_NUMERIC : FKT_E_STATE);
                snprintf(want, sizeof want, "%s %d failed", half ? "finish" : "begin", call - 1);
                assert_string_equal(fkt_error_text(), want);
                CHECK(!under_way && !misused);
                fail_begin = fail_finish = 0;
                CHECK_OK(ask(e, n, 2));
                CHECK(made == (int)workspaces);
                end(e);
            }
}

static fkt_status ask_from_a_thread(void *ctx, size_t item, unsigned worker)
{
    (void)worker;
    return ask(ctx, 1 + item % (3 * BATCH), (float)item);
}

static void threads_wait_for_a_workspace(void **state)
{
    (void)state;
    for (unsigned most = 1; most <= 3; most++) {
        struct fkt_engine *e;
        reset(NULL);
        limit = most;
        slow = 1;
        e = make(&halves, &small);
        CHECK_OK(fkt_parallel(8, 200, ask_from_a_thread, e, NULL, ""));
        CHECK(made <= (int)most && most_under_way <= (int)most);
        end(e);
    }
}

static void threads_share_a_card_that_is_full(void **state)
{
    struct fkt_engine *e;
    (void)state;
    memory = 2;
    slow = 1;
    e = make(&halves, &small);
    CHECK_OK(fkt_parallel(8, 200, ask_from_a_thread, e, NULL, ""));
    CHECK(made <= 2 && most_under_way <= 2);
    end(e);
}

static fkt_status ask_and_fail(void *ctx, size_t item, unsigned worker)
{
    const fkt_status st = ask_from_a_thread(ctx, item, worker);
    return st == FKT_E_STATE || st == FKT_E_NUMERIC ? FKT_OK : st; /* injected */
}

static void a_failure_does_not_leave_others_waiting(void **state)
{
    struct fkt_engine *e;
    (void)state;
    limit = 2;
    slow = 1;
    e = make(&halves, &small);
    for (int call = 1; call < 40; call += 3) {
        begun = finished = 0;
        fail_begin = call;
        fail_finish = call + 1;
        CHECK_OK(fkt_parallel(4, 20, ask_and_fail, e, NULL, ""));
    }
    fail_begin = fail_finish = 0;
    CHECK_OK(ask(e, 7, 3));
    CHECK(made <= 2);
    end(e);
}

/* The same bytes by a backend that knows them and by one that does not. */
static void bytes_pass_a_backend_that_knows_them(void **state)
{
    static uint8_t rgb[3 * BATCH * EACH], back[3 * BATCH * EACH];
    static float table[3][256], in[3 * BATCH * EACH], out[3 * BATCH * EACH];
    struct fkt_engine_spec spec = small;
    struct fkt_engine *e;
    const size_t n = 3 * BATCH - 1;
    (void)state;
    for (int i = 0; i < 3 * 256; i++) table[i / 256][i % 256] = (float)i;
    for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)(i * 41);
    spec.pixels_in = (const float(*)[256])table;
    e = make(&byte_halves, &spec);
    CHECK_OK(fkt_engine_run_bytes(e, rgb, n, out));
    for (size_t i = 0; i < n * EACH; i++) CHECK(out[i] == table[i % 3][rgb[i]]);
    assert_string_equal(notes, "b0b1f0b2f1f2");
    end(e);
    e = make(&halves, &spec); /* floats, in planes, plus one */
    CHECK_OK(fkt_engine_run_bytes(e, rgb, n, out));
    for (size_t i = 0; i < n * PLANE; i++)
        for (size_t c = 0; c < 3; c++)
            CHECK(out[(i / PLANE * 3 + c) * PLANE + i % PLANE] == table[c][rgb[3 * i + c]] + 1);
    end(e);
    spec = small;
    spec.bytes_out = 1;
    spec.out_scale = 255;
    for (size_t i = 0; i < n * EACH; i++) in[i] = (float)(i % 200);
    e = make(&byte_halves, &spec);
    CHECK_OK(fkt_engine_run_to_bytes(e, in, n, back));
    for (size_t i = 0; i < n * EACH; i++) CHECK(back[i] == i % 200 + 1);
    end(e);
    e = make(&halves, &spec);
    CHECK_OK(fkt_engine_run_to_bytes(e, in, n, back));
    for (size_t i = 0; i < n * EACH; i++)
        CHECK(back[i / EACH * EACH + i % PLANE * 3 + i % EACH / PLANE] == i % 200 + 1);
    end(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_batch_begins_before_the_last_one_ends, reset, done),
        cmocka_unit_test_setup_teardown(with_one_workspace_batches_come_one_by_one, reset, done),
        cmocka_unit_test_setup_teardown(a_card_that_is_full_gives_no_second_workspace, reset, done),
        cmocka_unit_test_setup_teardown(a_failure_of_either_half_leaves_nothing_under_way, reset, done),
        cmocka_unit_test_setup_teardown(threads_wait_for_a_workspace, reset, done),
        cmocka_unit_test_setup_teardown(threads_share_a_card_that_is_full, reset, done),
        cmocka_unit_test_setup_teardown(a_failure_does_not_leave_others_waiting, reset, done),
        cmocka_unit_test_setup_teardown(bytes_pass_a_backend_that_knows_them, reset, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
