/* SPDX-License-Identifier: Apache-2.0 */
/* The tiny autoencoder: the network that its tensors stand for, in both layouts; every tensor that does not fit is
 * named. */
#include "codec/family.h"
#include "nn/engine.h"
#include "tests/support/check.h"
#include "tests/support/member.h"
#include "tests/support/scratch.h"

static struct scratch dir;
static struct member half[2];

static void draw(uint64_t width, uint64_t latent, int diffusers)
{
    for (int i = 0; i < 2; i++) {
        member_release(&half[i]);
        member_init(&half[i], 10 + (uint64_t)i);
        member_taesd(&half[i], i, width, latent, diffusers);
    }
}

static const char *write_pair(enum fkt_dtype dtype)
{
    member_write(&half[0], scratch_path(&dir, "x_encoder.safetensors"), dtype);
    member_write(&half[1], scratch_path(&dir, "x_decoder.safetensors"), dtype);
    return scratch_path(&dir, "x_encoder.safetensors");
}

static const char *write_single(void)
{
    static struct member both;
    const char *path = scratch_path(&dir, "single.safetensors");
    both = half[0];
    for (size_t i = 0; i < half[1].n; i++) both.t[both.n++] = half[1].t[i];
    member_write(&both, path, FKT_F32);
    return path;
}

static void run(const struct fkt_family *f, int side, uint32_t size, const float *in, float *out)
{
    struct fkt_engine_spec spec = {.batch = 2, .height = size, .width = size};
    struct fkt_engine *e = NULL;
    CHECK_OK(fkt_engine_new(&e, &fkt_backend_ref, &f->net[side], f->weights[side], &spec));
    CHECK_OK(fkt_engine_run(e, in, 2, out));
    fkt_engine_free(e);
}

static void same_numbers_in_both_layouts(void **state)
{
    struct fkt_family a, b;
    static float pixels[2 * 3 * 16 * 16], za[2 * 4 * 4], zb[2 * 4 * 4], xa[2 * 3 * 16 * 16], xb[2 * 3 * 16 * 16];
    double size = 0;
    (void)state;
    for (size_t i = 0; i < sizeof pixels / sizeof *pixels; i++) pixels[i] = (float)(i * 7919 % 256) / 255.0F;
    draw(8, 4, 0);
    CHECK_OK(fkt_family_open(&a, write_pair(FKT_F32), NULL, NULL));
    draw(8, 4, 1);
    CHECK_OK(fkt_family_open(&b, write_single(), "tiny", NULL));
    assert_string_equal(a.kind, "taesd");
    assert_string_equal(a.layout, "taesd");
    assert_string_equal(b.layout, "diffusers");
    CHECK(a.latent_channels == 4 && a.reduction == 8 && b.latent_channels == 4 && b.reduction == 8);
    CHECK(a.pixel_scale[2] == 1 && a.pixel_shift[2] == 0 && a.latent_scale == 1 && a.latent_shift == 0);
    run(&a, 0, 16, pixels, za);
    run(&b, 0, 16, pixels, zb);
    run(&a, 1, 2, za, xa);
    run(&b, 1, 2, zb, xb);
    CHECK(!memcmp(za, zb, sizeof za) && !memcmp(xa, xb, sizeof xa));
    for (size_t i = 0; i < sizeof xa / sizeof *xa; i++) size = fmax(size, fabs((double)xa[i]));
    CHECK(size > 1e-3 && size < 1e3);
    fkt_family_clear(&a);
    fkt_family_clear(&b);
}

/* Figures of the published networks: 1,222,532 and 1,222,531 parameters, 477.8 and 552.1 MFLOP for 32 x 32 pixels. */
static void full_width_has_the_published_size(void **state)
{
    struct fkt_shape shapes[128];
    struct fkt_family f;
    (void)state;
    draw(64, 4, 0);
    CHECK_OK(fkt_family_open(&f, write_pair(FKT_BF16), "taesd", NULL));
    CHECK(fkt_net_parameters(&f.net[0]) == 1222532 && fkt_net_parameters(&f.net[1]) == 1222531);
    CHECK_OK(fkt_net_shapes(&f.net[0], 32, 32, shapes));
    CHECK_NEAR((double)fkt_net_flops(&f.net[0], shapes), 477.8e6, 0.1e6);
    CHECK_OK(fkt_net_shapes(&f.net[1], 4, 4, shapes));
    CHECK_NEAR((double)fkt_net_flops(&f.net[1], shapes), 552.1e6, 0.1e6);
    fkt_family_clear(&f);
    draw(8, 16, 0);
    CHECK_OK(fkt_family_open(&f, write_pair(FKT_F16), "taesd3", NULL));
    CHECK(f.latent_channels == 16);
    fkt_family_clear(&f);
}

/* The pair must be refused with exactly this report. */
static void refused(const char *path, const char *codec, const char *want)
{
    struct fkt_family f;
    char *report = NULL;
    CHECK_STATUS(fkt_family_open(&f, path, codec, &report), FKT_E_MISMATCH);
    CHECK(!f.file[0] && !f.net[0].op && !f.weights[0]);
    if (report) assert_string_equal(report, want);
    else if (!strstr(fkt_error_text(), want)) fail_msg("'%s' does not say '%s'", fkt_error_text(), want);
    fkt_free(report);
}

static void every_misfit_is_named(void **state)
{
    (void)state;
    draw(8, 4, 0);
    member_find(&half[0], "0.bias")->drop = 1;
    member_find(&half[0], "14.weight")->drop = 1;
    member_reshape(member_find(&half[1], "7.weight"), 8, 8, 1, 1);
    member_add(&half[1], "20.weight", 3, 3, 0, 0);
    refused(write_pair(FKT_F32), NULL,
            "'0.bias' (8) is missing\n'14.weight' (4,8,3,3) is missing\n'7.weight' is (8,8,1,1), expected (8,8,3,3)\n"
            "'20.weight' (3,3) is not part of this network\n");
    draw(8, 4, 1);
    member_reshape(member_find(&half[0], "encoder.layers.3.conv.0.weight"), 9, 8, 3, 3);
    member_add(&half[1], "quant_conv.weight", 2, 2, 0, 0);
    refused(write_single(), "tiny",
            "'encoder.layers.3.conv.0.weight' is (9,8,3,3), expected (8,8,3,3)\n"
            "'quant_conv.weight' (2,2) is not part of this network\n");
}

static void halves_that_do_not_belong_together(void **state)
{
    const char *encoder, *decoder;
    (void)state;
    draw(8, 4, 0);
    refused(write_pair(FKT_F32), "taesd3",
            "codec 'taesd3' has 16 latent channels and reduction 8, the tensors have 4 and reduction 8\n");
    refused(write_pair(FKT_F32), "dc-ae", "codec 'dc-ae' is of family 'dc-ae', the tensors are of 'taesd'\n");
    draw(8, 16, 0);
    decoder = scratch_path(&dir, "x_decoder.safetensors");
    encoder = scratch_path(&dir, "x_encoder.safetensors");
    member_write(&half[1], decoder, FKT_F32);
    refused(encoder, NULL, "the encoder makes 4 latent channels, the decoder takes 16\n");
    member_write(&half[0], decoder, FKT_F32);
    refused(encoder, NULL, "the file for the decoder holds an encoder");
    member_write(&half[1], encoder, FKT_F32);
    refused(encoder, NULL, "the file for the encoder holds a decoder");
    member_write(&half[0], scratch_path(&dir, "lonely.safetensors"), FKT_F32);
    refused(scratch_path(&dir, "lonely.safetensors"), NULL, "the decoder is absent");
    draw(8, 4, 1);
    member_write(&half[1], scratch_path(&dir, "lonely.safetensors"), FKT_F32);
    refused(scratch_path(&dir, "lonely.safetensors"), NULL, "the encoder is absent");
}

static int set_up(void **state)
{
    (void)state;
    scratch_init(&dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    member_release(&half[0]);
    member_release(&half[1]);
    scratch_release(&dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_numbers_in_both_layouts),
        cmocka_unit_test(full_width_has_the_published_size),
        cmocka_unit_test(every_misfit_is_named),
        cmocka_unit_test(halves_that_do_not_belong_together),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, set_up, tear_down));
}
