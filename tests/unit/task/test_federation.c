/* SPDX-License-Identifier: Apache-2.0 */
#include "task/federation.h"
#include "task/task.h"
#include "tests/support/scratch.h"
#include "tests/support/small_federation.h"
#include "tests/support/small_task.h"

#define PINNED_PLAIN "2f659eaceda92da8a43449600932a731fd308f69080f207fd9cac8508ae8b523"
#define PINNED_FEDERATION "f1ecd04d256ee5d3869cb22d0a5888113b09927a827363ec6c58fd8034467cdf"

static const struct fkt_federation_choices ten = {.sites = 10, .dropped = 1, .corrupt = 2};

static void a_federation_survives_its_file(void **state)
{
    struct scratch s;
    struct small_federation f;
    struct fkt_task back;
    struct fkt_sa_params p;
    struct fkt_share_plan shares;
    (void)state;
    scratch_init(&s);
    CHECK_OK(small_federation_init(&f, ten, 10));
    CHECK_OK(fkt_task_save(&f.task, scratch_path(&s, "task.json"), 0));
    CHECK_OK(fkt_task_load_into(&back, scratch_path(&s, "task.json")));
    assert_string_equal(back.sha256, f.task.sha256);
    CHECK_OK(fkt_federation_open(&back, &p, &shares));
    CHECK(p.sites == 10 && p.dropped == 1 && p.corrupt == 2 && p.degree == 9 && p.attempts == 8);
    CHECK(2 * p.threshold > 9 + 2 && p.threshold <= 8);
    CHECK(p.length == FED_CLASSES * FED_BLOCK && p.bits == fkt_sa_bits(10, p.bound));
    CHECK(shares.counted == 7 && shares.sites == 10);
    assert_memory_equal(p.roster, f.roster, 10 * FKT_SA_KEY);
    fkt_task_clear(&back);
    small_federation_release(&f);
    scratch_release(&s);
    CHECK(fkt_alloc_live() == 0);
}

/* The bound holds what a site may bring and the widest draw of one share, and no more than a few bits beyond. */
static void the_bound_is_wide_enough_and_not_wider(void **state)
{
    struct small_federation f;
    struct fkt_sa_params p;
    struct fkt_share_plan shares;
    (void)state;
    CHECK_OK(small_federation_init(&f, ten, 10));
    CHECK_OK(fkt_federation_open(&f.task, &p, &shares));
    CHECK_NEAR((double)p.bound, 16.0 * 256 * 256 + (double)shares.tail / sqrt(10), 3);
    small_federation_release(&f);
    CHECK_OK(small_federation_init(
        &f, (struct fkt_federation_choices){.sites = 10, .records = 3, .noise = FKT_NOISE_PLACE_CENTRAL}, 10));
    CHECK_OK(fkt_federation_open(&f.task, &p, &shares));
    CHECK(p.bound == 3 * 256 * 256 && shares.counted == 0 && shares.count_scale == 1);
    small_federation_release(&f);
    CHECK(fkt_alloc_live() == 0);
}

/* Whoever reads a task of an earlier version, or one that another machine made, must come to the same name for it. */
static void hashes_are_pinned(void **state)
{
    struct small_federation f;
    struct fkt_pipeline *w;
    struct fkt_dataset *ds;
    (void)state;
    CHECK_OK(small_pipeline(&w, &ds, 10, 1, FKT_COORDINATE_GAIN_SHAPE));
    assert_string_equal(fkt_pipeline_task(w)->sha256, PINNED_PLAIN);
    fkt_pipeline_free(w);
    fkt_dataset_free(ds);
    CHECK_OK(small_federation_init(&f, ten, 10));
    assert_string_equal(f.task.sha256, PINNED_FEDERATION);
    small_federation_release(&f);
}

struct change {
    const char *key, *value; /* NULL: the key is removed */
    const char *says;        /* part of the sentence; NULL: the task is taken, under another hash */
};

static void try_change(const struct small_federation *f, const char *text, const struct change *c)
{
    json_t *j = json_loads(text, 0, NULL), *o = json_object_get(j, "federation");
    struct fkt_task t;
    char *other;
    fkt_status st;
    if (c->value) json_object_set_new(o, c->key, json_loads(c->value, JSON_DECODE_ANY, NULL));
    else json_object_del(o, c->key);
    CHECK_OK(fkt_json_text(&other, j, 0));
    st = fkt_task_parse_into(&t, other, strlen(other));
    if (c->says && (st != FKT_E_FORMAT || !strstr(fkt_error_text(), c->says)))
        fail_msg("%s = %s: %s: %s", c->key, c->value ? c->value : "(absent)", fkt_status_name(st), fkt_error_text());
    if (!c->says && (st != FKT_OK || !strcmp(t.sha256, f->task.sha256)))
        fail_msg("%s = %s is not taken, or not in the hash: %s", c->key, c->value, fkt_error_text());
    if (st == FKT_OK) fkt_task_clear(&t);
    fkt_free(other);
}

static void every_number_is_checked(void **state)
{
    static const struct change change[] = {
        {"attempts", "5", NULL},
        {"keystream", "\"chacha20\"", NULL},
        {"failure", "21", NULL}, /* a complete graph for any of them */
        {"security", "41", NULL},
        {"degree", "8", "'degree' is 8"},
        {"threshold", "7", "'threshold' is 7"},
        {"threshold", "-1", "'threshold'"},
        {"bits", "40", "'bits' is 40"},
        {"bound", "1", "'bound' is 1"},
        {"records", "17", "'bound' is"}, /* what follows from it has not followed */
        {"records", "0", "1 to"},
        {"records", "-3", "1 to"},
        {"records", "2199023255552", "1 to"},
        {"sites", "11", "10 keys for 11 sites"},
        {"sites", "2", "10 keys"},
        {"sites", "65537", "10 keys"},
        {"sites", "4294967296", "out of range"},
        {"dropped", "2", "'bound'"},
        {"dropped", "7", "fewer than two honest"},
        {"corrupt", "1", "'bound'"},
        {"corrupt", "4294967295", "fewer than two honest"},
        {"security", "39", "security is"},
        {"security", "129", "security is"},
        {"failure", "0", "failure"},
        {"attempts", "0", "throws"},
        {"attempts", "17", "throws"},
        {"protocol", "\"fedkt.secagg/2\"", "protocol is not"},
        {"keystream", "\"mt19937\"", "unknown keystream"},
        {"noise", "\"none\"", "unknown place"},
        {"noise", "\"central\"", "'bound'"},
        {"roster", "[]", "0 keys for 10 sites"},
        {"roster", "7", "0 keys"},
        {"roster", NULL, "roster"},
        {"extra", "1", "federation"},
        {"bits", "\"40\"", "federation"},
    };
    struct small_federation f;
    char *text;
    (void)state;
    CHECK_OK(small_federation_init(&f, ten, 10));
    CHECK_OK(fkt_json_text(&text, fkt_task_json(&f.task), 0));
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) try_change(&f, text, &change[i]);
    fkt_free(text);
    small_federation_release(&f);
    CHECK(fkt_alloc_live() == 0);
}

static void every_key_is_checked(void **state)
{
    static const struct {
        int at;
        const char *key; /* NULL: that of site 0 */
        const char *says;
    } change[] = {
        {3, "00", "site 3 is not 64"},
        {3, "0000000000000000000000000000000000000000000000000000000000000000", "site 3"},
        {9, "EEFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF7F", "site 9 is not 64"},
        {9, "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", "site 9"}, /* p: not canonical */
        {4, NULL, "sites 0 and 4"},
    };
    struct small_federation f;
    char *text, *other;
    (void)state;
    CHECK_OK(small_federation_init(&f, ten, 10));
    CHECK_OK(fkt_json_text(&text, fkt_task_json(&f.task), 0));
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
        json_t *j = json_loads(text, 0, NULL), *list = json_object_get(json_object_get(j, "federation"), "roster");
        struct fkt_task t;
        json_array_set_new(list, (size_t)change[i].at,
                           json_string(change[i].key ? change[i].key : json_string_value(json_array_get(list, 0))));
        CHECK_OK(fkt_json_text(&other, j, 0));
        if (fkt_task_parse_into(&t, other, strlen(other)) != FKT_E_FORMAT || !strstr(fkt_error_text(), change[i].says))
            fail_msg("key %zu: %s", i, fkt_error_text());
        fkt_free(other);
    }
    json_t *j = json_loads(text, 0, NULL), *list = json_object_get(json_object_get(j, "federation"), "roster");
    struct fkt_task t;
    json_t *first = json_incref(json_array_get(list, 0));
    json_array_set(list, 0, json_array_get(list, 1)); /* the order numbers the sites */
    json_array_set_new(list, 1, first);
    CHECK_OK(fkt_json_text(&other, j, 0));
    CHECK_OK(fkt_task_parse_into(&t, other, strlen(other)));
    CHECK(strcmp(t.sha256, f.task.sha256) != 0);
    fkt_task_clear(&t);
    fkt_free(other);
    fkt_free(text);
    small_federation_release(&f);
    CHECK(fkt_alloc_live() == 0);
}

static void choices_that_cannot_be_are_refused(void **state)
{
    static const struct fkt_federation_choices bad[] = {
        {.sites = 2},
        {.sites = 10, .dropped = 5, .corrupt = 4},
        {.sites = 4, .dropped = 1, .corrupt = 1},
        {.sites = 10, .corrupt = 1, .security = 20},
        {.sites = 10, .corrupt = 1, .attempts = 17},
        {.sites = 10, .corrupt = 1, .records = UINT64_C(1) << 41},
    };
    struct small_federation f;
    struct fkt_task task = {0};
    struct fkt_sa_params p;
    struct fkt_share_plan shares;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fkt_status st = small_federation_init(&f, bad[i], 10);
        if (st != FKT_E_ARG) fail_msg("choice %zu: %s", i, fkt_status_name(st));
    }
    CHECK_STATUS(fkt_federation_open(&task, &p, &shares), FKT_E_STATE);
    CHECK_OK(small_federation_init(&f, ten, 10));
    f.task.federation.threshold--; /* in memory too, nothing derived is believed */
    CHECK_STATUS(fkt_federation_open(&f.task, &p, &shares), FKT_E_MISMATCH);
    small_federation_release(&f);
    CHECK(fkt_alloc_live() == 0);
}

/* Every site knows its own share, so that a promise which counts all of them holds towards no participant. */
static void a_curious_site_is_always_counted(void **state)
{
    struct small_federation f;
    (void)state;
    CHECK_STATUS(small_federation_init(&f, (struct fkt_federation_choices){.sites = 10}, 10), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "its own share") && strstr(fkt_error_hint(), "corrupt"));
    for (uint32_t n = 3; n < 10; n++) {
        CHECK_OK(small_federation_init(&f, (struct fkt_federation_choices){.sites = n, .corrupt = 1}, 10));
        small_federation_release(&f);
    }
    CHECK_OK(small_federation_init(&f, (struct fkt_federation_choices){.sites = 10, .noise = FKT_NOISE_PLACE_CENTRAL},
                                   10)); /* no shares to know */
    small_federation_release(&f);
    CHECK(fkt_alloc_live() == 0);
}

/* The chance that a round goes wrong is that of all its throws together: 2^-40 where one has 2^-42. */
static void the_graph_is_found_for_all_throws(void **state)
{
    static const uint32_t lost[] = {4, 2}, corrupt[] = {30, 36}, bits[17] = {[1] = 40, 41, 42, 42, 43, [16] = 44};
    (void)state;
    for (int i = 0; i < 2; i++) {
        uint32_t first = 0, last = 0;
        for (uint32_t attempts = 1; attempts <= 16; attempts++) {
            struct fkt_federation_choices c = {
                .sites = 80, .dropped = lost[i], .corrupt = corrupt[i], .attempts = attempts};
            struct small_federation f;
            uint32_t k, t;
            if (!bits[attempts]) continue;
            CHECK_OK(small_federation_init(&f, c, 10));
            CHECK_OK(fkt_sa_find(80, corrupt[i], lost[i], bits[attempts], 20, &k, &t));
            last = f.task.federation.degree;
            if (attempts == 1) first = last;
            if (last != k || f.task.federation.threshold != t)
                fail_msg("%u throws: degree %u and threshold %u, not %u and %u", attempts, last,
                         f.task.federation.threshold, k, t);
            small_federation_release(&f);
        }
        CHECK(first < last && last < 79);
    }
}

/* Towards the server a promise cannot be firmer than the graph. */
static void delta_is_not_below_what_the_graph_gives(void **state)
{
    struct fkt_federation_choices c = {.sites = 80, .dropped = 4, .corrupt = 8, .records = 16};
    struct small_federation f;
    struct fkt_task t;
    (void)state;
    CHECK_OK(small_federation_init(&f, c, 10));
    t = f.task;
    c.roster = f.roster;
    t.privacy.delta = 0.99 * 0x1p-40;
    CHECK_STATUS(fkt_federation_make(&t, &c), FKT_E_ARG);
    CHECK(strstr(fkt_error_text(), "2^-40") && strstr(fkt_error_hint(), "security"));
    t.privacy.delta = 0x1p-40;
    CHECK_OK(fkt_federation_make(&t, &c));
    fkt_federation_clear(&t.federation);
    t.privacy.delta = 0.99 * 0x1p-40;
    c.security = 41;
    CHECK_OK(fkt_federation_make(&t, &c));
    fkt_federation_clear(&t.federation);
    c.security = 40;
    c.sites = 20; /* a complete graph has no such chance */
    CHECK_OK(fkt_federation_make(&t, &c));
    fkt_federation_clear(&t.federation);
    c.sites = 80; /* and central noise promises nothing to the server */
    c.noise = FKT_NOISE_PLACE_CENTRAL;
    CHECK_OK(fkt_federation_make(&t, &c));
    fkt_federation_clear(&t.federation);
    small_federation_release(&f);
    CHECK(fkt_alloc_live() == 0);
}

/* Two lost sites wherever the graph bears them beside the corrupt ones, and what is chosen can be made a task of. */
static void two_may_be_lost_by_default(void **state)
{
    static const struct {
        uint32_t sites, corrupt, dropped;
    } rows[] = {{3, 1, 0},  {4, 1, 0},  {5, 1, 1},  {6, 1, 1},  {7, 1, 2},    {8, 1, 2},
                {10, 1, 2}, {11, 2, 2}, {20, 2, 2}, {21, 3, 3}, {50, 5, 5},   {51, 6, 6},
                {7, 2, 1},  {7, 5, 0},  {3, 3, 0},  {9, 0, 2},  {100, 0, 10}, {1000, 100, 100}};
    uint32_t degree, threshold;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint32_t d = fkt_federation_usual_dropped(rows[i].sites, rows[i].corrupt);
        if (d != rows[i].dropped) fail_msg("%u sites, %u corrupt: %u", rows[i].sites, rows[i].corrupt, d);
        if (rows[i].corrupt + 2 <= rows[i].sites)
            CHECK_OK(fkt_sa_find(rows[i].sites, rows[i].corrupt, d, 43, 20, &degree, &threshold));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_federation_survives_its_file),
        cmocka_unit_test(the_bound_is_wide_enough_and_not_wider),
        cmocka_unit_test(hashes_are_pinned),
        cmocka_unit_test(every_number_is_checked),
        cmocka_unit_test(every_key_is_checked),
        cmocka_unit_test(choices_that_cannot_be_are_refused),
        cmocka_unit_test(a_curious_site_is_always_counted),
        cmocka_unit_test(two_may_be_lost_by_default),
        cmocka_unit_test(the_graph_is_found_for_all_throws),
        cmocka_unit_test(delta_is_not_below_what_the_graph_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
