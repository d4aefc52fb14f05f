/* SPDX-License-Identifier: Apache-2.0 */
/* test_backends.c - the picker: by name, and the fastest; the plain loops can always be had. */
#include "nn/backends.h"
#include "tests/support/check.h"

#include <string.h>

static void by_name_and_without(void **state)
{
    const struct fkt_backend_row *r;
    size_t n = 0;
    (void)state;
    for (; (r = fkt_backend_row(n)); n++) {
        const int usable = !r->usable || r->usable();
        CHECK(r->engine && !strcmp(r->engine->name, r->name) && (!r->learner || !strcmp(r->learner->name, r->name)));
        CHECK(fkt_backend_pick(r->name) == (usable ? r->engine : NULL));
        CHECK(fkt_learner_pick(r->name) == (usable ? r->learner : NULL));
    }
    CHECK(n >= 2 && fkt_backend_pick("ref") == &fkt_backend_ref && fkt_learner_pick("ref") == &fkt_learner_ref);
    CHECK(fkt_backend_pick(NULL) && fkt_backend_pick(NULL) != &fkt_backend_ref);
    CHECK(fkt_learner_pick(NULL) && fkt_learner_pick(NULL) != &fkt_learner_ref);
    CHECK(!fkt_backend_pick("") && !fkt_learner_pick("auto"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_name_and_without)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
