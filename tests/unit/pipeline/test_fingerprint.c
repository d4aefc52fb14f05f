/* SPDX-License-Identifier: Apache-2.0 */
/* A name for images and their labels: which are of one class, and what the classes are called. */
#include "pipeline/fingerprint.h"
#include "tests/support/check.h"

static char first[FKT_SHA256_HEX];

/* Of digests of 32 sevens and threes, which are cats, and fives, a dog: by Python's hashlib from the sentence at the
 * top of fingerprint.c. In which order the classes stand is not in it; what they are called is. */
static void which_are_of_one_class(void **state)
{
    static const char want[] = "a287abe32644ccb69c9f549a61b79aab62af62d65a97f5c9ee90c72ab5a43553";
    static const struct {
        uint32_t label[3];
        const char *names[2];
        int same;
    } set[] = {{{0, 0, 1}, {"cat", "dog"}, 1},
               {{1, 1, 0}, {"dog", "cat"}, 1},
               {{0, 1, 1}, {"cat", "dog"}, 0},
               {{0, 0, 1}, {"dog", "cat"}, 0}};
    static const uint8_t byte[3] = {7, 3, 5};
    struct fkt_labelled list[3];
    (void)state;
    for (size_t k = 0; k < sizeof set / sizeof *set; k++) {
        for (int i = 0; i < 3; i++) {
            memset(&list[i].image, byte[i], sizeof list[i].image);
            list[i].label = set[k].label[i];
        }
        fkt_labelled_end(list, 3, set[k].names, first);
        assert_int_equal(strcmp(first, want) == 0, set[k].same);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(which_are_of_one_class)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
