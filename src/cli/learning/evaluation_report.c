/* SPDX-License-Identifier: Apache-2.0 */
/* evaluation_report.c - an evaluation as text: accuracies and confusions.
 *
 * Up to 20 classes the whole confusion matrix fits a screen, a row per true class and a column per prediction; for
 * more classes, the ten most frequent confusions are listed. Class names may come from an untrusted file: they are
 * shown without control characters. */
#include "cli/learning/evaluation.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { MATRIX_MAX = 20, NAME_COLUMNS = 16, COMMONEST = 10 };

/* A name cut or padded to so many columns; characters are counted, not bytes. */
static void show_name(const char *name, size_t columns)
{
    size_t used = 0, n = 0;
    for (; name[used] && n < columns; n++) used += fkt_utf8_length(name + used) ? fkt_utf8_length(name + used) : 1;
    cli_show(name, used);
    printf("%*s", (int)(columns - n), "");
}

static void per_class(const struct fkt_score *s, const char *name, uint32_t k)
{
    double x = fkt_score_class_accuracy(s, k);
    printf("  ");
    show_name(name, 24);
    if (x >= 0) printf(" %6.2f %%\n", 100 * x);
    else printf(" no images\n");
}

void cli_score_print(const struct fkt_score *s, const char *const *classes)
{
    printf("accuracy %.2f %% on %llu images\n", 100 * fkt_score_accuracy(s), (unsigned long long)fkt_score_total(s));
    for (uint32_t k = 0; k < s->classes; k++) per_class(s, classes[k], k);
}

static int width_of(const struct fkt_score *s)
{
    uint64_t most = 0;
    char digits[24];
    int n;
    for (size_t i = 0; i < (size_t)s->classes * s->classes; i++)
        if (s->confusion[i] > most) most = s->confusion[i];
    n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)most);
    return n < 3 ? 4 : n + 1;
}

static void matrix(const struct fkt_score *s, const struct fkt_model *m)
{
    int width = width_of(s);
    printf("\nconfusion matrix: a row per true class, a column per prediction; correct ones in brackets\n%*s",
           3 + NAME_COLUMNS, "");
    for (uint32_t k = 0; k < s->classes; k++) printf(" %*u ", width, k);
    putchar('\n');
    for (uint32_t i = 0; i < s->classes; i++) {
        printf("%2u ", i);
        show_name(fkt_model_class(m, i), NAME_COLUMNS);
        for (uint32_t k = 0; k < s->classes; k++) {
            uint64_t n = s->confusion[(size_t)i * s->classes + k];
            if (i == k) printf("[%*llu]", width, (unsigned long long)n);
            else if (n) printf(" %*llu ", width, (unsigned long long)n);
            else printf(" %*s ", width, ".");
        }
        putchar('\n');
    }
}

/* The largest entries off the diagonal, in descending order; equal ones in the order of the matrix. */
static void commonest(const struct fkt_score *s, const struct fkt_model *m)
{
    uint64_t last = UINT64_MAX;
    size_t from = 0, all = (size_t)s->classes * s->classes;
    printf("\nmost frequent confusions\n");
    for (int row = 0; row < COMMONEST; row++) {
        uint64_t best = 0;
        size_t at = all;
        for (size_t i = 0; i < all; i++) {
            uint64_t n = s->confusion[i];
            if (i / s->classes == i % s->classes || n > last || (n == last && i < from)) continue;
            if (n > best) {
                best = n;
                at = i;
            }
        }
        if (at == all) break;
        printf("  %6llu  ", (unsigned long long)best);
        show_name(fkt_model_class(m, (uint32_t)(at / s->classes)), 24);
        printf(" taken for ");
        show_name(fkt_model_class(m, (uint32_t)(at % s->classes)), 24);
        putchar('\n');
        last = best;
        from = at + 1;
    }
}

static void one_line(const char *how, const struct fkt_evaluation *j)
{
    printf("accuracy %.2f %% on %llu images%s (loss %.4f, calibration error %.3f)\n", 100 * fkt_evaluation_accuracy(j),
           (unsigned long long)fkt_score_total(&j->score), how, fkt_evaluation_loss(j),
           fkt_evaluation_calibration_error(j));
}

void cli_evaluation_print(const struct cli_evaluation *j, const struct fkt_model *m)
{
    one_line("", &j->plain);
    if (j->codec[0]) one_line(" through the codec", &j->through);
    for (uint32_t k = 0; k < fkt_model_classes(m); k++) per_class(&j->plain.score, fkt_model_class(m, k), k);
    if (fkt_model_classes(m) <= MATRIX_MAX) matrix(&j->plain.score, m);
    else commonest(&j->plain.score, m);
}

void cli_origin_print(const struct fkt_model_origin *o, int claimed)
{
    if (o->data[0]) {
        printf("%slearned from ", claimed ? "its file says: " : "");
        cli_show(o->data, strlen(o->data));
        putchar('\n');
    }
    if (o->public_images[0]) {
        printf("%sand from public images, which no promise covers: ", claimed ? "its file says: " : "");
        cli_show(o->public_images, strlen(o->public_images));
        putchar('\n');
    }
    if (!o->is_private) {
        printf("NOT PRIVATE: its training images are not, or cannot be shown to be, from a private release only\n");
        return;
    }
    printf("%sprivate: epsilon %g, delta %g", claimed ? "its file says: " : "", o->epsilon, o->delta);
    if (o->adjacency[0]) {
        printf(" (");
        cli_show(o->adjacency, strlen(o->adjacency));
        putchar(')');
    }
    printf(o->release_sha256[0] ? ", for each record behind the release; it adds nothing to that release's cost\n"
                                : ", for each record behind its releases together; it adds nothing to their cost\n");
}
