/* SPDX-License-Identifier: Apache-2.0 */
/* whole_onnx.c - makes whole models for check_whole.py: each kind of head and of coordinates, one network and two.
 *
 *   whole_onnx FOLDER N     FOLDER/KIND-PARTS-COORDINATES.onnx, .safetensors and .scores (N times K floats);
 *                           FOLDER/pixels (N times (S,S,3) bytes) */
#include "base/file.h"
#include "tests/support/whole_toy.h"

#include <stdio.h>
#include <stdlib.h>

static void make(const char *folder, enum fkt_head_kind kind, uint32_t parts, int clip, const uint8_t *rgb, size_t n)
{
    struct fkt_whole *m = NULL;
    float *scores = NULL;
    char path[512], stem[400];
    snprintf(stem, sizeof stem, "%s/%s-%u-%s", folder, fkt_head_name(kind), parts, clip ? "clip" : "gain-shape");
    toy_whole(&m, kind, parts, clip);
    CHECK_OK(fkt_alloc(&scores, n * TOY_CLASSES));
    CHECK_OK(fkt_whole_predict(m, rgb, n, scores, NULL));
    snprintf(path, sizeof path, "%s.onnx", stem);
    CHECK_OK(fkt_whole_export_onnx(m, path, 1));
    snprintf(path, sizeof path, "%s.safetensors", stem);
    CHECK_OK(fkt_whole_save(m, path, 1));
    snprintf(path, sizeof path, "%s.scores", stem);
    CHECK_OK(fkt_file_write(path, scores, n * TOY_CLASSES * sizeof *scores, FKT_FILE_REPLACE));
    fkt_free(scores);
    fkt_whole_free(m);
}

int main(int argc, char **argv)
{
    const size_t n = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    uint8_t *rgb = NULL;
    char path[512];
    if (!n || n > 1000) {
        fputs("usage: whole_onnx FOLDER N\n", stderr);
        return 2;
    }
    CHECK_OK(fkt_alloc(&rgb, n * 3 * TOY_SIZE * TOY_SIZE));
    toy_pictures(rgb, n);
    snprintf(path, sizeof path, "%s/pixels", argv[1]);
    CHECK_OK(fkt_file_write(path, rgb, n * 3 * TOY_SIZE * TOY_SIZE, FKT_FILE_REPLACE));
    for (int kind = 0; kind < FKT_HEAD_KINDS; kind++)
        for (uint32_t parts = 1; parts < 3; parts++)
            for (int clip = 0; clip < 2; clip++) make(argv[1], (enum fkt_head_kind)kind, parts, clip, rgb, n);
    fkt_free(rgb);
    return 0;
}
