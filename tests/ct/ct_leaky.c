/* SPDX-License-Identifier: Apache-2.0 */
/* ct_leaky.c - what tests/ct must find: copies of three functions, each with one of the classic leaks. Chosen on the
 * command line, because each must be found by itself. */
#include "tests/ct/ct.h"

#include <string.h>

static volatile int sink;

/* fkt_same that stops at the first difference. */
static int same_with_a_branch(void)
{
    uint8_t a[32] = {1}, b[32] = {1};
    SECRET(a, sizeof a);
    for (size_t i = 0; i < sizeof a; i++)
        if (a[i] != b[i]) return 1;
    return 0;
}

/* A table indexed by a secret, as AES in portable C does it. */
static int lookup_by_a_secret(void)
{
    static const uint8_t table[256] = {1, 2, 3};
    uint8_t key = 77;
    SECRET(&key, 1);
    sink = table[key];
    return 0;
}

/* Reduction that subtracts only when needed. */
static int subtraction_when_needed(void)
{
    uint64_t share = 5;
    SECRET(&share, sizeof share);
    if (share >= 3) share -= 3;
    PUBLIC(&share, sizeof share);
    sink = (int)share;
    return 0;
}

int main(int argc, char **argv)
{
    static const struct ct_case cases[] = {
        {"branch", same_with_a_branch}, {"lookup", lookup_by_a_secret}, {"subtraction", subtraction_when_needed}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (argc == 2 && strcmp(argv[1], cases[i].name) == 0) return ct_main(cases + i, 1);
    fprintf(stderr, "usage: ct_leaky branch | lookup | subtraction\n");
    return 2;
}
