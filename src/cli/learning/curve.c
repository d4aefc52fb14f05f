/* SPDX-License-Identifier: Apache-2.0 */
/* curve.c - the accuracy of a training by epoch, drawn with characters.
 *
 *   100 |                 ..*****          * on the training images
 *       |        ...******oooooo           o on the held-out images
 *    50 |   .****ooooooooo
 *
 * Few epochs are drawn several columns wide each; if there are more epochs than columns, a column shows the last of
 * its epochs. */
#include "cli/learning/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 10, COLUMNS = 60, LEAST = 3, WIDEST = 6 };

static void mark(char grid[ROWS][COLUMNS + 1], size_t column, double accuracy, char message)
{
    int row;
    if (!(accuracy >= 0 && accuracy <= 1)) return;
    row = (int)lround((1 - accuracy) * (ROWS - 1));
    grid[row][column] = message;
}

void cli_curve_show(const struct fkt_epoch *e, size_t n)
{
    char grid[ROWS][COLUMNS + 1];
    size_t wide = n ? COLUMNS / n : 0, columns;
    int held = 0;
    if (n < LEAST) return;
    if (wide > WIDEST) wide = WIDEST;
    columns = wide ? n * wide : COLUMNS;
    memset(grid, ' ', sizeof grid);
    for (int r = 0; r < ROWS; r++) grid[r][columns] = '\0';
    for (size_t c = 0; c < columns; c++) {
        const struct fkt_epoch *at = &e[wide ? c / wide : (c + 1) * n / columns - 1];
        mark(grid, c, at->accuracy, '*');
        mark(grid, c, at->held_accuracy, 'o');
        held |= isfinite(at->held_accuracy);
    }
    printf("accuracy by epoch: * in training%s\n", held ? ", o on held-out images" : "");
    for (int r = 0; r < ROWS; r++) {
        if (r == 0 || r == ROWS - 1) printf("%5d |%s\n", r ? 0 : 100, grid[r]);
        else printf("      |%s\n", grid[r]);
    }
    printf("      +");
    for (size_t c = 0; c < columns; c++) putchar('-');
    printf("\n       1%*zu\n\n", (int)columns - 1, n);
}
