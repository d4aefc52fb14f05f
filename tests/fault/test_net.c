/* SPDX-License-Identifier: Apache-2.0 */
/* Fails the 1st, 2nd, 3rd ... allocation of what net/ does before a connection is there, and of the weights' places
 * and records; nothing may leak. A connection itself is libcurl's memory. */
#include "codec/golden.h"
#include "codec/cache.h"
#include "codec/pull_record.h"
#include "net/page.h"
#include "net/pull.h"
#include "tests/support/scratch.h"
#include "tests/support/sweep.h"

#include <sys/stat.h>
#include <unistd.h>

static struct scratch s;
static char folder[300];

static fkt_status run_addresses(void)
{
    struct fkt_hub hub = {NULL, "a/b", "main"};
    char *endpoint = NULL, *url = NULL;
    fkt_status st;
    FKT_TRY(fkt_hub_endpoint(&endpoint, "https://h"));
    hub.endpoint = endpoint;
    FKT_TRY(fkt_hub_url(&url, &hub, "c"));
out:
    fkt_free(endpoint);
    fkt_free(url);
    return st;
}

/* An empty wish: lock, gathering folder, rename. */
static fkt_status run_pull(void)
{
    struct fkt_pull_spec spec = {.hub = {"https://127.0.0.1:1", "a/b", "main"}, .folder = folder, .force = 1};
    struct fkt_pull p;
    fkt_status st;
    FKT_TRY(fkt_pull_begin(&p, &spec));
    FKT_TRY(fkt_pull_fetch(&p));
    FKT_TRY(fkt_pull_commit(&p));
out:
    fkt_pull_clear(&p);
    return st;
}

static fkt_status run_record(void)
{
    struct fkt_weights_record r = {.codec = "c", .hub = "https://h", .repo = "a/b", .revision = "v", .files = 1}, back;
    fkt_status st;
    snprintf(r.file[0].name, sizeof r.file[0].name, "f");
    snprintf(r.file[0].checked, sizeof r.file[0].checked, "hub");
    memset(r.file[0].sha256, 'a', 64);
    st = fkt_weights_record_save(&r, s.dir);
    return st == FKT_OK ? fkt_weights_record_load(&back, s.dir) : st;
}

static fkt_status run_place(void)
{
    char *out = NULL;
    fkt_status st = fkt_codec_weights_path(&out, "taesd", NULL);
    fkt_free(out);
    if (st == FKT_OK) st = fkt_codec_weights_path(&out, "taesd", s.dir);
    fkt_free(st == FKT_OK ? out : NULL);
    return st;
}

static fkt_status run_golden(void)
{
    struct fkt_codec_spec spec = {.name = "dct", .size = 8, .dim = 8};
    struct fkt_codec *codec = NULL;
    struct fkt_golden g;
    fkt_status st;
    FKT_TRY(fkt_codec_open(&codec, &spec));
    FKT_TRY(fkt_golden_run(&g, codec, NULL));
out:
    fkt_codec_free(codec);
    return st;
}

/* Whoever writes a status looks at its text once, in the end. */
static fkt_status run_page(void)
{
    static const char *const names[] = {"a", "b", "c"};
    static const uint8_t slot[] = {FKT_SITE_READY, FKT_SITE_LOST, FKT_SITE_AWAY};
    const struct fkt_page_facts f = {.task_name = "t", .sites = 3, .names = names, .classes = names, .n_classes = 3};
    const struct fkt_mailbox_view v = {.sites = 3, .slot = slot};
    const struct fkt_page_counts c = {.requests = 1};
    struct fkt_text t;
    fkt_status st;
    fkt_text_init(&t);
    fkt_page_status(&t, &f, &v, &c, 1, 0);
    fkt_page_metrics(&t, &f, &v, &c, 1);
    st = fkt_text_status(&t);
    fkt_text_clear(&t);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    scratch_init(&s);
    snprintf(folder, sizeof folder, "%s/pulled", s.dir);
    setenv("FEDKT_CACHE", s.dir, 1);
    CHECK(mkdir(scratch_path(&s, "codecs"), 0777) == 0 && mkdir(scratch_path(&s, "codecs/taesd"), 0777) == 0);
    CHECK(symlink("x", scratch_path(&s, "codecs/taesd/a.safetensors")) == 0);
    CHECK(sweep_allocations(run_addresses, NULL) > 2);
    CHECK(sweep_allocations(run_page, NULL) > 3);
    CHECK(sweep_allocations(run_pull, NULL) > 4);
    CHECK(sweep_allocations(run_record, NULL) > 4);
    CHECK(sweep_allocations(run_place, NULL) > 2);
    CHECK(sweep_allocations(run_golden, NULL) > 3);
    scratch_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
