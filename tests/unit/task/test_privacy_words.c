/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences about privacy say what the task says, and their one number is never below the truth. */
#include "task/privacy_words.h"
#include "tests/support/small_federation.h"

/* Phi(mu/2) by hand: Phi(0.5) = 0.691462, Phi(1) = 0.841345. */
static void guesses_are_rounded_up(void **state)
{
    (void)state;
    CHECK_NEAR(fkt_guess_percent(1), 69.2, 1e-9);
    CHECK_NEAR(fkt_guess_percent(2), 84.2, 1e-9);
    CHECK_NEAR(fkt_guess_percent(0), 50, 1e-9);
    CHECK(fkt_guess_percent(1000) <= 100);
}

static void check_holds(const struct fkt_text *t, const char *words)
{
    if (!strstr(t->s, words)) fail_msg("'%s' is not in: %s", words, t->s);
}

static void says_what_the_task_says(void **state)
{
    struct small_federation f;
    struct fkt_text t;
    (void)state;
    CHECK_OK(small_federation_init(&f, (struct fkt_federation_choices){.sites = 9, .dropped = 2, .corrupt = 1}, 1));
    fkt_text_init(&t);
    CHECK_OK(fkt_privacy_words(&t, &f.task));
    check_holds(&t, "Protected: presence, pixels and label of any one record.");
    check_holds(&t, "epsilon 1 and delta 1e-5:");
    check_holds(&t, "whether one given image was used, guesses right at most 5");
    check_holds(&t, "with up to 2 of 9 sites lost and 1 colluding");
    check_holds(&t, "Not protected:");
    CHECK(!strstr(t.s, "exact sum") && !strstr(t.s, "WEAK"));
    fkt_text_clear(&t);
    snprintf(f.task.service.address, sizeof f.task.service.address, "https://localhost:1");
    f.task.service.seeded = 1;
    CHECK_OK(fkt_privacy_words(&t, &f.task));
    check_holds(&t, "Nothing is protected");
    CHECK(!strstr(t.s, "epsilon"));
    fkt_text_clear(&t);
    small_federation_release(&f);
}

static void a_weak_promise_is_called_so(void **state)
{
    struct small_federation f;
    struct fkt_text t;
    (void)state;
    CHECK_OK(small_federation_init(&f, (struct fkt_federation_choices){.sites = 5, .corrupt = 1}, 30));
    fkt_text_init(&t);
    CHECK_OK(fkt_privacy_words(&t, &f.task));
    check_holds(&t, "WEAK PROMISE: epsilon 30 is above 20. Nothing made under this task is called private.\n");
    fkt_text_clear(&t);
    small_federation_release(&f);
}

static void central_noise_is_told(void **state)
{
    struct small_federation f;
    struct fkt_text t;
    (void)state;
    CHECK_OK(small_federation_init(
        &f, (struct fkt_federation_choices){.sites = 9, .dropped = 2, .noise = FKT_NOISE_PLACE_CENTRAL}, 10));
    fkt_text_init(&t);
    CHECK_OK(fkt_privacy_words(&t, &f.task));
    check_holds(&t, "epsilon 10 and");
    check_holds(&t, "the server sees their exact sum, must be trusted with it");
    fkt_text_clear(&t);
    small_federation_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guesses_are_rounded_up),
        cmocka_unit_test(says_what_the_task_says),
        cmocka_unit_test(a_weak_promise_is_called_so),
        cmocka_unit_test(central_noise_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
