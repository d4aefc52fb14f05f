/* SPDX-License-Identifier: Apache-2.0 */
/* family_config.c - reads the config.json that is published beside weights.
 *
 * The tensors say what the network is; this file adds what they cannot say (scaling factors, activations, shortcuts)
 * and is held against them where it repeats what they say. Keys are those of diffusers' AutoencoderTiny and
 * AutoencoderDC; efficientvit's file holds a model's name alone. It comes from outside: one MiB at most, numbers and
 * lists bounded before they are stored, unknown keys passed over (diffusers adds some with every release). null counts
 * as not said. */
#include "codec/family_config.h"

#include "tensor/safetensors_header.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

enum { NUMBER_MAX = 1 << 20 };

struct reader {
    json_t *root;
    const char *name;
    fkt_status st; /* sticky */
};

static json_t *value(const struct reader *r, const char *key)
{
    json_t *v = json_object_get(r->root, key);
    return r->st == FKT_OK && v && !json_is_null(v) ? v : NULL;
}

static void refuse(struct reader *r, const char *key, const char *why)
{
    r->st = fkt_fail(FKT_E_FORMAT, "'%s': '%s' is not %s", r->name, key, why);
}

static void number(struct reader *r, const char *key, json_t *v, uint32_t *out)
{
    if (!v) return;
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > NUMBER_MAX)
        refuse(r, key, "a whole number in range");
    else *out = (uint32_t)json_integer_value(v);
}

static void real(struct reader *r, const char *key, double *out)
{
    json_t *v = value(r, key);
    if (!v) return;
    if (!json_is_number(v) || !(fabs(json_number_value(v)) <= 1e6)) refuse(r, key, "a number in range");
    else *out = json_number_value(v);
}

static void truth(struct reader *r, const char *key, int *out)
{
    json_t *v = value(r, key);
    if (!v) return;
    if (!json_is_boolean(v)) refuse(r, key, "true or false");
    else *out = json_is_true(v);
}

/* Only letters, digits and the marks of names: such words go into sentences as they are. */
static void word(struct reader *r, const char *key, json_t *v, char out[FKT_CONFIG_WORD])
{
    const char *s = json_string_value(v);
    size_t n = s ? strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") : 0;
    if (!v) return;
    if (!s || n != json_string_length(v) || n >= FKT_CONFIG_WORD) refuse(r, key, "a short word");
    else memcpy(out, s, n + 1);
}

static void numbers(struct reader *r, const char *key, struct fkt_config_numbers *out)
{
    json_t *v = value(r, key), *item;
    size_t i;
    if (!v) return;
    if (!json_is_array(v) || !json_array_size(v) || json_array_size(v) > FKT_CONFIG_STAGES) {
        refuse(r, key, "a list of 1 to 16 numbers");
        return;
    }
    json_array_foreach (v, i, item) number(r, key, item, &out->at[i]);
    out->count = (uint32_t)json_array_size(v);
}

static void words(struct reader *r, const char *key, struct fkt_config_words *out)
{
    json_t *v = value(r, key), *item;
    size_t i;
    if (!v) return;
    if (json_is_string(v)) {
        word(r, key, v, out->at[0]);
        out->count = 1;
        out->one = 1;
        return;
    }
    if (!json_is_array(v) || !json_array_size(v) || json_array_size(v) > FKT_CONFIG_STAGES) {
        refuse(r, key, "a word or a list of 1 to 16 words");
        return;
    }
    json_array_foreach (v, i, item) word(r, key, item, out->at[i]);
    out->count = (uint32_t)json_array_size(v);
}

void fkt_family_config_init(struct fkt_family_config *c)
{
    *c = (struct fkt_family_config){.scaling = NAN, .shift = NAN, .shortcut = {-1, -1}};
}

static void read_all(struct reader *r, struct fkt_family_config *c)
{
    word(r, "_class_name", value(r, "_class_name"), c->class_name);
    word(r, "model_name", value(r, "model_name"), c->model_name);
    number(r, "in_channels", value(r, "in_channels"), &c->in_channels);
    number(r, "out_channels", value(r, "out_channels"), &c->out_channels);
    number(r, "latent_channels", value(r, "latent_channels"), &c->latent_channels);
    number(r, "attention_head_dim", value(r, "attention_head_dim"), &c->head);
    real(r, "scaling_factor", &c->scaling);
    real(r, "shift_factor", &c->shift);
    numbers(r, "encoder_block_out_channels", &c->widths[0]);
    numbers(r, "decoder_block_out_channels", &c->widths[1]);
    numbers(r, "encoder_layers_per_block", &c->depths[0]);
    numbers(r, "decoder_layers_per_block", &c->depths[1]);
    numbers(r, "num_encoder_blocks", &c->depths[0]);
    numbers(r, "num_decoder_blocks", &c->depths[1]);
    truth(r, "encoder_out_shortcut", &c->shortcut[0]);
    truth(r, "decoder_in_shortcut", &c->shortcut[1]);
    word(r, "decoder_conv_act_fn", value(r, "decoder_conv_act_fn"), c->conv_act);
    word(r, "act_fn", value(r, "act_fn"), c->act);
    word(r, "downsample_block_type", value(r, "downsample_block_type"), c->down);
    word(r, "upsample_block_type", value(r, "upsample_block_type"), c->up);
    words(r, "decoder_norm_types", &c->norms);
    words(r, "decoder_act_fns", &c->acts);
}

fkt_status fkt_family_config_parse(struct fkt_family_config *c, const char *text, size_t len, const char *name)
{
    struct reader r = {.name = name};
    json_error_t e;
    fkt_family_config_init(c);
    if (len > FKT_CONFIG_BYTES_MAX)
        return fkt_fail(FKT_E_FORMAT, "'%s' is too large: %zu bytes, at most %u", name, len, FKT_CONFIG_BYTES_MAX);
    r.root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &e);
    if (!r.root) {
        char shown[FKT_ST_SHOWN];
        return fkt_fail(FKT_E_FORMAT, "'%s' is not JSON: %s at byte %d", name, fkt_st_shown(shown, e.text), e.position);
    }
    if (!json_is_object(r.root)) r.st = fkt_fail(FKT_E_FORMAT, "'%s' is not a JSON object", name);
    read_all(&r, c);
    if (r.st == FKT_OK && !isnan(c->scaling) && !(fabs(c->scaling) >= 1e-6))
        refuse(&r, "scaling_factor", "a number in range");
    c->present = r.st == FKT_OK;
    json_decref(r.root);
    return r.st;
}
