/* SPDX-License-Identifier: Apache-2.0 */
/* The deep-compression autoencoder: the same network from both layouts, with and without its further scale; the
 * published size at full width; misfits named; config.json held against the tensors. Values against PyTorch are in the
 * golden vectors' own test. */
#include "base/file.h"
#include "codec/family.h"
#include "nn/engine.h"
#include "tests/support/check.h"
#include "tests/support/member.h"
#include "tests/support/scratch.h"

static struct scratch dir;
static struct member m;

static const char *draw(const struct member_dcae *base, int efficientvit)
{
    static char path[600];
    struct member_dcae c = *base;
    snprintf(path, sizeof path, "%s/%s.safetensors", dir.dir, efficientvit ? "evit" : "diffusers");
    c.efficientvit = efficientvit;
    member_release(&m);
    member_init(&m, 5);
    member_dcae(&m, &c);
    return path;
}

static void write_config(const char *text)
{
    CHECK_OK(fkt_file_write(scratch_path(&dir, "config.json"), text, strlen(text), FKT_FILE_REPLACE));
}

static void run(const struct fkt_family *f, int side, uint32_t size, const float *in, float *out)
{
    struct fkt_engine_spec spec = {.batch = 1, .height = size, .width = size};
    struct fkt_engine *e = NULL;
    CHECK_OK(fkt_engine_new(&e, &fkt_backend_ref, &f->net[side], f->weights[side], &spec));
    CHECK_OK(fkt_engine_run(e, in, 1, out));
    fkt_engine_free(e);
}

static void check_layouts(const struct member_dcae *c, uint32_t reduction)
{
    static float pixels[3 * 8 * 8], z[2][256], x[2][3 * 8 * 8];
    char hash[2][FKT_HASH_HEX];
    double size = 0;
    for (size_t i = 0; i < sizeof pixels / sizeof *pixels; i++) pixels[i] = (float)(i * 7919 % 256) / 127.5F - 1;
    for (int e = 0; e < 2; e++) {
        struct fkt_family f;
        const char *path = draw(c, e);
        member_write(&m, path, e ? FKT_BF16 : FKT_F32);
        CHECK_OK(fkt_family_open(&f, path, "dc-ae", NULL));
        assert_string_equal(f.kind, "dc-ae");
        assert_string_equal(f.layout, e ? "efficientvit" : "diffusers");
        CHECK(f.latent_channels == c->latent && f.reduction == reduction);
        CHECK(f.pixel_scale[2] == 2 && f.pixel_shift[2] == -1 && f.latent_scale == 1 && f.latent_shift == 0);
        run(&f, 0, 8, pixels, z[e]);
        run(&f, 1, 8 / reduction, z[e], x[e]);
        CHECK_OK(fkt_family_sha256(&f, hash[e]));
        fkt_family_clear(&f);
    }
    CHECK(!memcmp(z[0], z[1], sizeof z[0]) && !memcmp(x[0], x[1], sizeof x[0]));
    assert_string_equal(hash[0], hash[1]);
    for (size_t i = 0; i < 3 * 8 * 8; i++) size = fmax(size, fabs((double)x[0][i]));
    CHECK(size > 1e-3 && size < 1e4);
}

static void same_numbers_in_both_layouts(void **state)
{
    (void)state;
    check_layouts(&member_small_dcae, 4);
    check_layouts(&member_small_sana, 4);
}

/* A head's q, k and v are 96 neighbouring rows of the whole: the three matrices are stacked, and cut by heads after. */
static void thirds_are_not_queries_keys_values(void **state)
{
    const struct fkt_op *op;
    struct fkt_family f;
    const char *path;
    (void)state;
    path = draw(&member_small_dcae, 0);
    member_write(&m, path, FKT_F32);
    CHECK_OK(fkt_family_open(&f, path, NULL, NULL));
    for (op = f.net[0].op; op->kind != FKT_OP_ATTENTION;) op++;
    CHECK(op->groups == 32);
    op = &f.net[0].op[op->in[0] - 1];
    CHECK(op->kind == FKT_OP_CONV && op->channels == 192 && f.net[0].slot[op->weight].parts == 3);
    assert_string_equal(f.net[0].slot[op->weight].name[1], "encoder.down_blocks.2.0.attn.to_k.weight");
    fkt_family_clear(&f);
}

/* Batch norm goes with ReLU, RMS norm with SiLU; the pixels' end of the decoder has ReLU. */
static void activations_follow_the_norms(void **state)
{
    size_t relu[2] = {0}, silu[2] = {0};
    struct fkt_family f;
    const char *path;
    (void)state;
    path = draw(&member_small_dcae, 0);
    member_write(&m, path, FKT_F32);
    CHECK_OK(fkt_family_open(&f, path, NULL, NULL));
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < f.net[side].n_ops; i++) {
            relu[side] += f.net[side].op[i].kind == FKT_OP_RELU;
            silu[side] += f.net[side].op[i].kind == FKT_OP_SILU;
        }
    CHECK(relu[0] == 0 && silu[0] == 3); /* one residual block, two gates */
    CHECK(relu[1] == 3 && silu[1] == 1); /* two residual blocks and the end; one gate */
    fkt_family_clear(&f);
}

static uint64_t learnt(const struct fkt_net *n)
{
    uint64_t sum = fkt_net_parameters(n);
    for (size_t i = 0; i < n->n_slots; i++)
        if (strstr(n->slot[i].name[0], "running_")) sum -= fkt_slot_count(&n->slot[i]);
    return sum;
}

/* Figures of the published f32c32: 123,172,384 and 200,184,076 parameters; 32.58 and 43.27 GFLOP for 64 x 64 pixels;
 * 338 tensors in efficientvit's file, 362 in diffusers'. */
static void full_width_has_the_published_size(void **state)
{
    struct fkt_shape shapes[256];
    (void)state;
    for (int e = 0; e < 2; e++) {
        struct member_dcae c = member_f32c32;
        const char *path = scratch_path(&dir, "full.safetensors");
        struct fkt_family f;
        member_release(&m);
        member_init(&m, 1);
        m.blank = 1;
        c.efficientvit = e;
        member_dcae(&m, &c);
        CHECK(m.n == (e ? 338 : 362));
        member_write_hole(&m, path);
        CHECK_OK(fkt_family_open(&f, path, "dc-ae-f32c32-in", NULL));
        CHECK(learnt(&f.net[0]) == 123172384 && learnt(&f.net[1]) == 200184076);
        CHECK(f.latent_scale == 0.3189);
        CHECK_OK(fkt_net_shapes(&f.net[0], 64, 64, shapes));
        CHECK_REL((double)fkt_net_flops(&f.net[0], shapes), 32.58e9, 1e-3);
        CHECK_OK(fkt_net_shapes(&f.net[1], 2, 2, shapes));
        CHECK_REL((double)fkt_net_flops(&f.net[1], shapes), 43.27e9, 1e-3);
        fkt_family_clear(&f);
    }
}

static void refused(const char *path, const char *want)
{
    struct fkt_family f;
    char *report = NULL;
    member_write(&m, path, FKT_F32);
    CHECK_STATUS(fkt_family_open(&f, path, NULL, &report), FKT_E_MISMATCH);
    if (!report) fail_msg("no report: %s", fkt_error_text());
    assert_string_equal(report, want);
    fkt_free(report);
}

static void every_misfit_is_named(void **state)
{
    const char *p;
    (void)state;
    p = draw(&member_small_dcae, 1);
    member_find(&m, "encoder.stages.2.op_list.1.context_module.main.qkv.conv.weight")->drop = 1;
    member_reshape(member_find(&m, "encoder.stages.1.op_list.0.main.conv1.conv.weight"), 16, 16, 1, 1);
    member_find(&m, "decoder.stages.1.op_list.2.main.conv2.norm.running_var")->drop = 1;
    member_add(&m, "decoder.head.weight", 4, 4, 0, 0);
    refused(p, "'encoder.stages.1.op_list.0.main.conv1.conv.weight' is (16,16,1,1), expected (16,16,3,3)\n"
               "'encoder.stages.2.op_list.1.context_module.main.qkv.conv.weight' (192,64,1,1) is missing\n"
               "'decoder.stages.1.op_list.2.main.conv2.norm.running_var' (16) is missing\n"
               "'decoder.head.weight' (4,4) is not part of this network\n");
    p = draw(&member_small_dcae, 0);
    member_reshape(member_find(&m, "encoder.down_blocks.2.1.conv_out.conv_depth.bias"), 9, 0, 0, 0);
    member_reshape(member_find(&m, "encoder.down_blocks.2.1.attn.to_k.weight"), 9, 64, 0, 0);
    refused(p, "'encoder.down_blocks.2.1.attn.to_k.weight' is (9,64), expected (64,64,1,1)\n"
               "'encoder.down_blocks.2.1.conv_out.conv_depth.bias' is (9), expected (512)\n");
    p = draw(&member_small_dcae, 0);
    member_find(&m, "encoder.down_blocks.1.1.conv.weight")->drop = 1;
    member_find(&m, "encoder.down_blocks.1.1.conv.bias")->drop = 1;
    refused(p, "block 0 of stage 1 of the encoder should be the step to the next stage\n");
    p = draw(&member_small_dcae, 0);
    member_add(&m, "encoder.down_blocks.2.70.conv1.weight", 4, 4, 3, 3);
    member_add(&m, "encoder.down_blocks.99999999999.0.conv1.weight", 4, 4, 3, 3);
    refused(p, "2 tensors of the encoder are beyond 16 stages, 64 blocks or 4 scales\n");
    p = draw(&member_small_dcae, 0);
    member_add(&m, "encoder.down_blocks.2.3.conv1.bias", 64, 0, 0, 0);
    refused(p, "block 2 of stage 2 of the encoder is missing\n");
}

static void numbers_that_cannot_be(void **state)
{
    struct member_dcae odd = member_small_dcae;
    const char *p;
    (void)state;
    odd.width[2] = 96; /* a shortcut would have to average 64 channels to 96 */
    p = draw(&odd, 0);
    refused(p, "encoder: a step of 24 rows does not join stages 1 and 2 of 16 and 96 channels\n");
    odd.latent = 7;
    odd.width[2] = 64;
    p = draw(&odd, 0);
    refused(p, "encoder: 64 channels are not a multiple of 7 latent ones\n");
    p = draw(&member_small_dcae, 0);
    member_reshape(member_find(&m, "encoder.down_blocks.1.1.conv.weight"), 10, 16, 3, 3);
    member_reshape(member_find(&m, "encoder.down_blocks.1.1.conv.bias"), 10, 0, 0, 0);
    refused(p, "encoder: a step of 10 rows does not join stages 1 and 2 of 16 and 64 channels\n");
    p = draw(&member_small_dcae, 0);
    member_reshape(member_find(&m, "encoder.conv_out.weight"), 8, 64, 3, 3);
    member_reshape(member_find(&m, "decoder.conv_in.weight"), 64, 4, 3, 3);
    refused(p, "the encoder makes 8 latent channels, the decoder takes 4\n");
    p = draw(&member_small_sana, 0);
    member_reshape(member_find(&m, "decoder.up_blocks.2.0.attn.to_qkv_multiscale.0.proj_in.weight"), 192, 1, 4, 4);
    member_reshape(member_find(&m, "decoder.up_blocks.2.0.attn.to_qkv_multiscale.0.proj_out.weight"), 192, 7, 1, 1);
    refused(p, "stage 2 of the decoder: 192 channels of attention are not heads of 3 x 7\n"
               "stage 2 of the decoder: scale 0 of the attention has no odd window up to 31\n");
}

static void config_is_held_against_the_tensors(void **state)
{
    static const struct {
        const char *config, *want;
    } cases[] = {
        {"{\"latent_channels\": 4}", "config.json: latent_channels is 4, the tensors have 8\n"},
        {"{\"_class_name\": \"AutoencoderKL\"}",
         "config.json: _class_name is 'AutoencoderKL', the tensors are of 'AutoencoderDC'\n"},
        {"{\"encoder_block_out_channels\": [9, 16, 32]}",
         "config.json: encoder_block_out_channels says 32 for stage 2, the tensors have 64\n"},
        {"{\"decoder_layers_per_block\": [0, 2, 3]}",
         "config.json: decoder_layers_per_block says 3 for stage 2, the tensors have 1\n"},
        {"{\"encoder_layers_per_block\": [0, 1]}", "config.json: 2 stages of the encoder, the tensors have 3\n"},
        {"{\"upsample_block_type\": \"interpolate\"}",
         "config.json: upsample_block_type is 'interpolate', the tensors say 'pixel_shuffle'\n"},
        {"{\"downsample_block_type\": \"Conv\"}",
         "config.json: downsample_block_type is 'Conv', the tensors of stage 1 differ\n"},
        {"{\"decoder_norm_types\": [\"batch_norm\", \"rms_norm\", \"rms_norm\"]}",
         "config.json: decoder_norm_types is 'rms_norm', the tensors say 'batch_norm'\n"},
        {"{\"decoder_act_fns\": [\"relu\", \"silu\", \"silu\"]}",
         "config.json: decoder_act_fns is 'silu', the tensors say 'relu'\n"},
        {"{\"decoder_conv_act_fn\": \"gelu\"}",
         "config.json: decoder_conv_act_fn is 'gelu', known are 'relu' and 'silu'\n"},
        {"{\"attention_head_dim\": 48}", "stage 2 of the encoder: 192 channels of attention are not heads of 3 x 48\n"
                                         "stage 2 of the decoder: 192 channels of attention are not heads of 3 x 48\n"},
        {"{\"in_channels\": 1}", "config.json: in_channels and out_channels must be 3\n"},
    };
    const char *path;
    (void)state;
    path = draw(&member_small_dcae, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_config(cases[i].config);
        refused(path, cases[i].want);
    }
    CHECK(remove(scratch_path(&dir, "config.json")) == 0);
}

static void config_adds_what_tensors_cannot_say(void **state)
{
    struct fkt_family f;
    const char *path;
    (void)state;
    path = draw(&member_small_dcae, 0);
    member_write(&m, path, FKT_F32);
    CHECK_OK(fkt_family_open(&f, path, NULL, NULL));
    size_t plain[2] = {f.net[0].n_ops, f.net[1].n_ops};
    fkt_family_clear(&f);
    write_config("{\"_class_name\": \"AutoencoderDC\", \"_diffusers_version\": \"9.9\", \"latent_channels\": 8,"
                 "\"scaling_factor\": 0.25, \"shift_factor\": -0.5, \"encoder_out_shortcut\": false,"
                 "\"decoder_in_shortcut\": false, \"attention_head_dim\": 64, \"decoder_conv_act_fn\": \"silu\","
                 "\"encoder_block_out_channels\": [128, 16, 64], \"encoder_layers_per_block\": [0, 1, 2],"
                 "\"decoder_layers_per_block\": [0, 2, 1], \"downsample_block_type\": \"pixel_unshuffle\","
                 "\"upsample_block_type\": \"pixel_shuffle\","
                 "\"decoder_norm_types\": [\"batch_norm\", \"batch_norm\", \"rms_norm\"],"
                 "\"decoder_act_fns\": [\"relu\", \"relu\", \"silu\"], \"unknown\": {\"deep\": [1, null]}}");
    CHECK_OK(fkt_family_open(&f, path, NULL, NULL));
    CHECK(f.latent_scale == 0.25 && f.latent_shift == -0.5);
    CHECK(f.net[0].n_ops == plain[0] - 2 && f.net[1].n_ops == plain[1] - 2);
    for (size_t i = 0; i < f.net[0].n_ops; i++)
        if (f.net[0].op[i].kind == FKT_OP_ATTENTION) CHECK(f.net[0].op[i].groups == 64);
    CHECK(f.net[1].op[f.net[1].n_ops - 3].kind == FKT_OP_SILU);
    fkt_family_clear(&f);
    path = draw(&member_small_dcae, 1);
    member_write(&m, path, FKT_F32);
    write_config("{\"model_name\": \"dc-ae-f64c128-mix-1.0\"}");
    CHECK_OK(fkt_family_open(&f, path, "dc-ae", NULL));
    CHECK(f.latent_scale == 0.4538);
    fkt_family_clear(&f);
    CHECK(remove(scratch_path(&dir, "config.json")) == 0);
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
    member_release(&m);
    scratch_release(&dir);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_numbers_in_both_layouts),
        cmocka_unit_test(thirds_are_not_queries_keys_values),
        cmocka_unit_test(activations_follow_the_norms),
        cmocka_unit_test(full_width_has_the_published_size),
        cmocka_unit_test(every_misfit_is_named),
        cmocka_unit_test(numbers_that_cannot_be),
        cmocka_unit_test(config_is_held_against_the_tensors),
        cmocka_unit_test(config_adds_what_tensors_cannot_say),
    };
    return check_nothing_left(cmocka_run_group_tests(tests, set_up, tear_down));
}
