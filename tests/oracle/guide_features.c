/* SPDX-License-Identifier: Apache-2.0 */
/* guide_features.c - what a guide makes of the two golden images, for check_guide.py.
 *
 *   guide_features NAME WEIGHTS SIZE FEATURES     two times D floats; the identity to stdout */
#include "fedkt/codec.h"
#include "tests/support/check.h"
#include "tests/support/golden.h"

int main(int argc, char **argv)
{
    struct fkt_codec_spec spec = {.size = 0};
    struct fkt_codec *c = NULL;
    uint8_t *rgb;
    float *z;
    FILE *out;
    size_t image, n;
    if (argc != 5) return 2;
    spec.name = argv[1];
    spec.settings.weights = argv[2];
    spec.size = (uint32_t)strtoul(argv[3], NULL, 10);
    if (fkt_codec_open(&c, &spec) != FKT_OK) {
        fprintf(stderr, "%s\n", fkt_error_text());
        return 1;
    }
    image = (size_t)spec.size * spec.size * 3;
    n = GOLDEN_IMAGES * (size_t)fkt_codec_dim(c);
    rgb = malloc(GOLDEN_IMAGES * image);
    z = malloc(n * sizeof *z);
    out = fopen(argv[4], "wb");
    if (!rgb || !z || !out) return 1;
    for (uint32_t i = 0; i < GOLDEN_IMAGES; i++) golden_image(rgb + i * image, spec.size, i);
    if (fkt_codec_encode(c, rgb, GOLDEN_IMAGES, z) != FKT_OK) {
        fprintf(stderr, "%s\n", fkt_error_text());
        return 1;
    }
    n -= fwrite(z, sizeof *z, n, out);
    printf("%s\n", fkt_codec_identity(c));
    fkt_codec_free(c);
    free(rgb);
    free(z);
    return fclose(out) != 0 || n != 0;
}
