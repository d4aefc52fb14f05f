/* SPDX-License-Identifier: Apache-2.0 */
/* The packed integers are the same bytes for any number of sites, any partition, any order, any number of threads, and
 * whether sites are joined by merge or by packed sums. The reference is one site that adds its records one by one. */
#include "base/threads.h"
#include "tests/support/layouts.h"
#include "tests/support/slow_moments.h"

#include <pthread.h>

struct data {
    uint32_t classes, m, rq;
    size_t n, block;
    uint32_t *labels; /* (n) */
    int32_t *q;       /* (n, m) */
    size_t *order;    /* (n) which record comes k-th */
    size_t *cut;      /* (sites + 1) site s holds order[cut[s] .. cut[s+1]) */
    int batch;        /* the most records per call */
};

enum joining { MERGE, PACKED };

struct job {
    const struct data *d;
    enum joining how;
    struct fkt_moments *total;
    pthread_mutex_t lock;
};

static fkt_status site_moments(const struct data *d, size_t site, struct fkt_moments **out)
{
    uint32_t *labels = NULL;
    int32_t *q = NULL;
    fkt_status st;
    size_t n = d->cut[site + 1] - d->cut[site], step;
    *out = NULL;
    FKT_TRY(fkt_alloc(&labels, n));
    FKT_TRY(fkt_alloc(&q, n * d->m));
    for (size_t k = 0; k < n; k++) {
        size_t from = d->order[d->cut[site] + k];
        labels[k] = d->labels[from];
        memcpy(q + k * d->m, d->q + from * d->m, d->m * sizeof *q);
    }
    FKT_TRY(fkt_moments_new(out, d->classes, ONE_PART(d->m, d->rq), 0));
    for (size_t k = 0; k < n; k += step) {
        step = 1 + (k * 7 + site) % (size_t)d->batch;
        if (step > n - k) step = n - k;
        FKT_TRY(fkt_moments_add(*out, labels + k, q + k * d->m, step));
    }
out:
    fkt_free(labels);
    fkt_free(q);
    return st;
}

/* Sites arrive in whatever order the threads finish. */
static fkt_status one_site(void *ctx, size_t site, unsigned worker)
{
    struct job *j = ctx;
    struct fkt_moments *m = NULL;
    const int64_t *packed;
    fkt_status st;
    (void)worker;
    FKT_TRY(site_moments(j->d, site, &m));
    FKT_TRY(fkt_moments_packed(m, &packed));
    pthread_mutex_lock(&j->lock);
    st = j->how == MERGE ? fkt_moments_merge(j->total, m) : fkt_moments_add_packed(j->total, packed);
    pthread_mutex_unlock(&j->lock);
out:
    fkt_moments_free(m);
    return st;
}

static void check_join(const struct data *d, size_t sites, unsigned threads, enum joining how, const int64_t *want)
{
    struct job j = {.d = d, .how = how, .lock = PTHREAD_MUTEX_INITIALIZER};
    const int64_t *got;
    CHECK_OK(fkt_moments_new(&j.total, d->classes, ONE_PART(d->m, d->rq), 0));
    CHECK_OK(fkt_parallel(threads, sites, one_site, &j, NULL, "sites"));
    CHECK_OK(fkt_moments_packed(j.total, &got));
    if (memcmp(got, want, d->classes * d->block * sizeof *got))
        fail_msg("K %u, m %u, Rq %u: %zu sites on %u threads give other integers", d->classes, d->m, d->rq, sites,
                 threads);
    fkt_moments_free(j.total);
}

static int ascending(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* A random order, cut at random places: some sites get nothing, some nearly all. */
static void partition(struct data *d, size_t sites, uint64_t seed)
{
    struct fkt_rng r;
    fkt_rng_init(&r, seed, sites);
    for (size_t i = 0; i < d->n; i++) d->order[i] = i;
    fkt_rng_shuffle(&r, d->order, d->n);
    for (size_t s = 1; s < sites; s++) d->cut[s] = fkt_rng_below(&r, d->n + 1);
    d->cut[0] = 0;
    d->cut[sites] = d->n;
    qsort(d->cut, sites + 1, sizeof *d->cut, ascending);
    d->batch = (int)(1 + fkt_rng_below(&r, 200));
}

static void any_split_gives_the_same_integers(void **state)
{
    const struct {
        uint32_t classes, used, m, rq;
        size_t n;
    } shapes[] = {
        {1, 1, 1, 64, 500},    {10, 10, 65, 256, 3000}, {10, 3, 129, 4096, 1500},  {100, 60, 7, 256, 3000},
        {1, 1, 129, 256, 900}, {3, 2, 64, 1000, 0},     {100, 3, 129, 4096, 1000}, /* the last: 81 rows per class */
    };
    const size_t sites[] = {1, 2, 20, 1000};
    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        struct data d = {.classes = shapes[s].classes, .m = shapes[s].m, .rq = shapes[s].rq, .n = shapes[s].n};
        struct fkt_moments *one;
        const int64_t *want;
        d.block = fkt_moments_block(d.m);
        CHECK_OK(fkt_alloc(&d.labels, d.n));
        CHECK_OK(fkt_alloc(&d.q, d.n * d.m));
        CHECK_OK(fkt_alloc(&d.order, d.n));
        CHECK_OK(fkt_alloc(&d.cut, 1001));
        random_records(d.labels, d.q, d.n, shapes[s].used, d.m, d.rq, 100 + s);
        CHECK_OK(fkt_moments_new(&one, d.classes, ONE_PART(d.m, d.rq), 0));
        for (size_t i = 0; i < d.n; i++) CHECK_OK(fkt_moments_add(one, d.labels + i, d.q + i * d.m, 1));
        CHECK_OK(fkt_moments_packed(one, &want));
        for (size_t i = 0; i < 4; i++)
            for (unsigned threads = 1; threads <= 4; threads++) {
                if (sites[i] == 1000 && (threads != 2 || d.classes * d.block > 100000)) continue; /* for time */
                partition(&d, sites[i], s * 10 + threads);
                check_join(&d, sites[i], threads, threads % 2 ? MERGE : PACKED, want);
                check_join(&d, sites[i], threads, threads % 2 ? PACKED : MERGE, want);
            }
        fkt_moments_free(one);
        fkt_free(d.labels), fkt_free(d.q), fkt_free(d.order), fkt_free(d.cut);
    }
    CHECK(fkt_alloc_live() == 0);
}

/* Merging without flushing first: rows that wait in one site move to the other. */
static void waiting_rows_survive_a_chain_of_merges(void **state)
{
    enum { N = 2000, K = 3, M = 33, B = (M + 1) * (M + 2) / 2 };
    static uint32_t labels[N];
    static int32_t q[N * M];
    static int64_t want[K * B];
    struct fkt_moments *total;
    const int64_t *got;
    (void)state;
    random_records(labels, q, N, K, M, 256, 5);
    slow_moments(want, K, M, labels, q, N);
    CHECK_OK(fkt_moments_new(&total, K, ONE_PART(M, 256), N));
    for (size_t k = 0, step; k < N; k += step) {
        struct fkt_moments *site;
        step = 1 + k % 97 < N - k ? 1 + k % 97 : N - k;
        CHECK_OK(fkt_moments_new(&site, K, ONE_PART(M, 256), 0));
        CHECK_OK(fkt_moments_add(site, labels + k, q + k * M, step));
        CHECK_OK(fkt_moments_merge(total, site));
        fkt_moments_free(site);
    }
    CHECK_OK(fkt_moments_packed(total, &got));
    CHECK(!memcmp(got, want, sizeof want));
    fkt_moments_free(total);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_split_gives_the_same_integers),
        cmocka_unit_test(waiting_rows_survive_a_chain_of_merges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
