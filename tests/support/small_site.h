/* SPDX-License-Identifier: Apache-2.0 */
/* small_site.h - files of one site of a small federation (small_service.h) in a scratch folder: task.json, signed by
 * the operator, site.key and four images. */
#ifndef FKT_TEST_SMALL_SITE_H
#define FKT_TEST_SMALL_SITE_H

#include "fedkt/join.h"
#include "tests/support/image_files.h"
#include "tests/support/scratch.h"
#include "tests/support/small_service.h"

struct small_site {
    struct scratch s;
    struct small_federation f;
    struct fkt_join_spec spec; /* task, key, data, state, ledger, out */
    char paths[6][512];
};

/* choices NULL: a pinned server and no end; sign 0: the task is not signed. */
static inline void small_site_init(struct small_site *w, const struct fkt_service_choices *choices, int sign)
{
    static const char *const names[6] = {"task.json", "site.key", "images", "state", "ledger", "out"};
    static const char *const folders[2] = {"images/cat", "images/dog"};
    static const struct fkt_service_choices usual = {.address = "https://fedkt.example.org:8443", .pin = SERVICE_PIN};
    struct fkt_key key = {.site = {.name = "North clinic"}};
    char name[64];
    memset(&w->spec, 0, sizeof w->spec);
    scratch_init(&w->s);
    CHECK_OK(small_service_init(&w->f, choices ? choices : &usual));
    if (sign) CHECK_OK(fkt_task_sign(&w->f.task, small_operator(&w->f)));
    for (int i = 0; i < 6; i++) {
        const char *path = scratch_path(&w->s, names[i]);
        CHECK(strlen(path) < sizeof w->paths[i]);
        memcpy(w->paths[i], path, strlen(path) + 1);
    }
    CHECK_OK(fkt_task_save(&w->f.task, w->paths[0], 0));
    memcpy(key.site.key, w->f.roster, FKT_SA_KEY);
    memcpy(key.secret, w->f.secrets, FKT_SA_SECRET);
    CHECK_OK(fkt_key_save(&key, w->paths[1], 0, NULL));
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 2; i++) {
            size_t len;
            uint8_t *png = image_plain(&len, 16, 16, (uint8_t)(40 * i + 10), (uint8_t)(90 * k), 30);
            snprintf(name, sizeof name, "%s/%d.png", folders[k], i);
            scratch_write(&w->s, name, png, len);
            free(png);
        }
    }
    w->spec.task = w->paths[0];
    w->spec.key = w->paths[1];
    w->spec.data = w->paths[2];
    w->spec.state = w->paths[3];
    w->spec.ledger = w->paths[4];
    w->spec.out = w->paths[5];
    w->spec.threads = 1;
}

static inline void small_site_clear(struct small_site *w)
{
    small_federation_release(&w->f);
    scratch_release(&w->s);
}

#endif
