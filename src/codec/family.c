/* SPDX-License-Identifier: Apache-2.0 */
/* family.c - recognises a pair of networks, or the one of a guide, from its tensors, and binds their weights.
 *
 *   files -> which layout do most names speak? -> builder (taesd.c, dcae.c, resnet.c, ...) derives networks from shapes
 *         -> config.json is held against them -> every slot finds its tensor, every tensor its slot
 *
 * Nothing is computed and no weight is read: opening costs two headers. All misfits are gathered before anything is
 * said, a line each, since whoever brings weights of another kind wants to see the whole of it; the sentence of the
 * failure has the first three. What cannot be told from tensors comes from config.json, then from the member's name. */
#include "codec/family.h"

#include "base/alloc.h"
#include "tensor/safetensors_header.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static const struct {
    const char *kind, *layout, *class_name;
    double pixel_scale, pixel_shift; /* 0 for a guide: its builder sets them */
    fkt_status (*build)(struct fkt_family_draft *d);
} layouts[FKT_LAYOUTS] = {
    [FKT_LAYOUT_TAESD] = {"taesd", "taesd", "AutoencoderTiny", 1, 0, fkt_taesd_build},
    [FKT_LAYOUT_TINY] = {"taesd", "diffusers", "AutoencoderTiny", 1, 0, fkt_taesd_build},
    [FKT_LAYOUT_DC] = {"dc-ae", "diffusers", "AutoencoderDC", 2, -1, fkt_dcae_build},
    [FKT_LAYOUT_EFFICIENTVIT] = {"dc-ae", "efficientvit", "AutoencoderDC", 2, -1, fkt_dcae_build},
    [FKT_LAYOUT_RESNET] = {"resnet", "torchvision", NULL, 0, 0, fkt_resnet_guide_build},
    [FKT_LAYOUT_EFFICIENTNET] = {"efficientnet-lite0", "efficientnet-lite-pytorch", NULL, 0, 0, fkt_efficientnet_build},
};

static int is_guide(enum fkt_family_layout l) { return l == FKT_LAYOUT_RESNET || l == FKT_LAYOUT_EFFICIENTNET; }

/* The rest of `s` behind `prefix` and a number, or NULL. */
static const char *after(const char *s, const char *prefix)
{
    size_t n = strlen(prefix);
    if (strncmp(s, prefix, n) != 0 || !isdigit((unsigned char)s[n])) return NULL;
    for (s += n; isdigit((unsigned char)*s);) s++;
    return *s == '.' ? s + 1 : NULL;
}

/* The layout in which `name` makes sense; FKT_LAYOUTS: in none. *side gets whose tensor it is. */
static enum fkt_family_layout layout_of(const char *name, int *side)
{
    static const char *const sides[2] = {"encoder.", "decoder."};
    static const char *const stages[2] = {"down_blocks.", "up_blocks."};
    *side = FKT_CODEC_SIDE_ENCODER;
    if (after(name, "")) return FKT_LAYOUT_TAESD;
    if (after(name, "layer") || !strncmp(name, "conv1.", 6) || !strncmp(name, "bn1.", 4)) return FKT_LAYOUT_RESNET;
    if (after(name, "_blocks.") || !strncmp(name, "_conv_", 6)) return FKT_LAYOUT_EFFICIENTNET;
    for (*side = 0; *side < 2; ++*side) {
        const char *rest;
        if (strncmp(name, sides[*side], 8) != 0) continue;
        if (after(name + 8, "layers.")) return FKT_LAYOUT_TINY;
        if ((rest = after(name + 8, stages[*side])) && after(rest, "")) return FKT_LAYOUT_DC;
        if ((rest = after(name + 8, "stages.")) && after(rest, "op_list.")) return FKT_LAYOUT_EFFICIENTVIT;
        return FKT_LAYOUTS;
    }
    return FKT_LAYOUTS;
}

struct census {
    size_t votes[FKT_LAYOUTS];
    size_t side[2];
};

static void count(struct census *c, const struct fkt_safetensors *file)
{
    for (size_t i = 0; file && i < fkt_safetensors_count(file); i++) {
        int side;
        enum fkt_family_layout l = layout_of(fkt_safetensors_at(file, i)->name, &side);
        if (l == FKT_LAYOUTS) continue;
        c->votes[l]++;
        c->side[side]++;
    }
}

static fkt_status choose_layout(enum fkt_family_layout *out, struct census *c, const struct fkt_family_source *s)
{
    char shown[FKT_ST_SHOWN];
    *c = (struct census){0};
    count(c, s->file[0]);
    count(c, s->file[1]);
    *out = FKT_LAYOUT_TAESD;
    for (int i = 1; i < FKT_LAYOUTS; i++)
        if (c->votes[i] > c->votes[*out]) *out = (enum fkt_family_layout)i;
    if (c->votes[*out]) return FKT_OK;
    if (!fkt_safetensors_count(s->file[0])) return fkt_fail(FKT_E_MISMATCH, "'%s' holds no tensors", s->name);
    return fkt_fail_hint(FKT_E_MISMATCH,
                         "known are TAESD's own files, AutoencoderTiny and AutoencoderDC of diffusers, DC-AE of "
                         "efficientvit; and as guides torchvision's ResNet and EfficientNet-Lite0",
                         "'%s' is of no family that is known here: its first tensor is '%s'", s->name,
                         fkt_st_shown(shown, fkt_safetensors_at(s->file[0], 0)->name));
}

/* A Sequential of TAESD by itself: the encoder begins at layer 0, the decoder ends at layer 19. */
static int sequential_side(const struct fkt_safetensors *f)
{
    if (fkt_safetensors_find(f, "19.weight") || fkt_safetensors_find(f, "19.bias")) return FKT_CODEC_SIDE_DECODER;
    if (fkt_safetensors_find(f, "0.weight") || fkt_safetensors_find(f, "0.bias")) return FKT_CODEC_SIDE_ENCODER;
    return -1;
}

/* Is there one network of each kind, in the place where it belongs? */
static fkt_status check_sides(struct fkt_family_draft *d, const struct census *c, const struct fkt_family_source *s)
{
    static const char *const sides[2] = {"encoder", "decoder"};
    if (d->layout == FKT_LAYOUT_TAESD && s->file[1]) {
        for (int i = 0; i < 2; i++)
            if (sequential_side(s->file[i]) == !i)
                return fkt_fail(FKT_E_MISMATCH, "'%s': the file for the %s holds %s", s->name, sides[i],
                                i ? "an encoder" : "a decoder");
        d->file[0] = s->file[0];
        d->file[1] = s->file[1];
        return FKT_OK;
    }
    if (d->layout == FKT_LAYOUT_TAESD) {
        int side = sequential_side(s->file[0]);
        return fkt_fail_hint(FKT_E_MISMATCH, "TAESD's own files come in pairs: ..._encoder and ..._decoder.safetensors",
                             "'%s': the %s is absent", s->name, sides[side == FKT_CODEC_SIDE_ENCODER]);
    }
    if (s->file[1])
        return fkt_fail(FKT_E_MISMATCH, "'%s': a pair of files, but the tensors are named as in a single one", s->name);
    if (is_guide(d->layout)) {
        d->file[0] = s->file[0];
        return FKT_OK;
    }
    for (int i = 0; i < 2; i++)
        if (!c->side[i]) return fkt_fail(FKT_E_MISMATCH, "'%s': the %s is absent", s->name, sides[i]);
    d->file[0] = d->file[1] = s->file[0];
    return FKT_OK;
}

static void check_config(const struct fkt_family_draft *d)
{
    const struct fkt_family_config *c = d->config;
    const char *want = layouts[d->layout].class_name;
    if (c->class_name[0] && (!want || strcmp(c->class_name, want) != 0))
        fkt_text_addf(d->misfits, "config.json: _class_name is '%s', the tensors are of '%s'\n", c->class_name,
                      want ? want : layouts[d->layout].kind);
    if (c->latent_channels && d->family->latent_channels && c->latent_channels != d->family->latent_channels)
        fkt_text_addf(d->misfits, "config.json: latent_channels is %u, the tensors have %u\n", c->latent_channels,
                      d->family->latent_channels);
    if ((c->in_channels && c->in_channels != 3) || (c->out_channels && c->out_channels != 3))
        fkt_text_addf(d->misfits, "config.json: in_channels and out_channels must be 3\n");
}

static void check_member(const struct fkt_family_draft *d, const char *codec)
{
    const struct fkt_member *m = codec ? fkt_member_find(codec, strlen(codec)) : NULL;
    const struct fkt_family *f = d->family;
    if (!m) return;
    if (strcmp(m->kind, f->kind) != 0)
        fkt_text_addf(d->misfits, "%s '%s' is of family '%s', the tensors are of '%s'\n", m->guide ? "guide" : "codec",
                      codec, m->kind, f->kind);
    else if (m->guide && ((m->variant && f->variant[0] && strcmp(m->variant, f->variant) != 0) ||
                          (m->latent_channels && f->latent_channels && m->latent_channels != f->latent_channels)))
        fkt_text_addf(d->misfits, "guide '%s' has %u features%s%s%s, the tensors have %u%s%s%s\n", codec,
                      m->latent_channels ? m->latent_channels : f->latent_channels, m->variant ? " (" : "",
                      m->variant ? m->variant : "", m->variant ? ")" : "", f->latent_channels, m->variant ? " (" : "",
                      m->variant ? f->variant : "", m->variant ? ")" : "");
    else if (!m->guide && m->latent_channels && f->latent_channels &&
             (m->latent_channels != f->latent_channels || m->reduction != f->reduction))
        fkt_text_addf(d->misfits,
                      "codec '%s' has %u latent channels and reduction %u, the tensors have %u and reduction %u\n",
                      codec, m->latent_channels, m->reduction, f->latent_channels, f->reduction);
}

/* config.json, then the model's name in it, then the member's name; else 1 and 0. */
static void set_scales(const struct fkt_family_draft *d, const char *codec)
{
    const struct fkt_family_config *c = d->config;
    const char *mark = strstr(c->model_name, "-1.");
    const struct fkt_member *m = fkt_member_find(c->model_name, mark ? (size_t)(mark - c->model_name) : 0);
    if (!m && codec) m = fkt_member_find(codec, strlen(codec));
    d->family->latent_scale = !isnan(c->scaling) ? c->scaling : m ? m->latent_scale : 1;
    d->family->latent_shift = !isnan(c->shift) ? c->shift : 0;
    for (int k = 0; k < 3 && !d->family->guide; k++) {
        d->family->pixel_scale[k] = layouts[d->layout].pixel_scale;
        d->family->pixel_shift[k] = layouts[d->layout].pixel_shift;
    }
}

/* In one file that holds both networks each looks at its own tensors; what is of neither is the encoder's misfit. */
static int counted(const char *name)
{
    size_t n = strlen(name), m = strlen(".num_batches_tracked");
    return n > m && !strcmp(name + n - m, ".num_batches_tracked");
}
static int not_for_encoder(const char *name) { return counted(name) || !strncmp(name, "decoder.", 8); }
static int not_for_decoder(const char *name) { return counted(name) || strncmp(name, "decoder.", 8) != 0; }
/* The layer of a published classifier that a guide leaves out. */
static int not_for_guide(const char *name)
{
    return counted(name) || !strncmp(name, "fc.", 3) || !strncmp(name, "_fc.", 4);
}

static fkt_status bind(struct fkt_family_draft *d)
{
    int (*const ignore[2])(const char *) = {d->family->guide ? not_for_guide : not_for_encoder, not_for_decoder};
    int single = d->family->guide || d->file[0] == d->file[1];
    for (int i = 0; i < (d->family->guide ? 1 : 2); i++) {
        char *lines = NULL;
        fkt_status st = fkt_weights_bind(&d->family->weights[i], &d->family->net[i], &d->file[i], 1,
                                         single ? ignore[i] : NULL, &lines);
        if (lines) fkt_text_add(d->misfits, lines);
        fkt_free(lines);
        if (st != FKT_OK && st != FKT_E_MISMATCH) return st;
    }
    return fkt_text_status(d->misfits);
}

/* The first three lines make the sentence. */
static fkt_status verdict(const struct fkt_family_draft *d, const char *name)
{
    struct fkt_text t;
    size_t lines = 0, shown = 0;
    fkt_status st = fkt_text_status(d->misfits);
    if (st != FKT_OK || !d->misfits->len) return st;
    fkt_text_init(&t);
    for (const char *s = d->misfits->s; *s; s = strchr(s, '\n') + 1) {
        if (shown == 3) fkt_text_add(&t, "; ...");
        else if (shown < 3) fkt_text_addf(&t, "%s%.*s", shown ? "; " : "", (int)(strchr(s, '\n') - s), s);
        shown++;
        lines++;
    }
    st = fkt_text_status(&t);
    if (st == FKT_OK)
        st = fkt_hint_code(fkt_fail(FKT_E_MISMATCH, "'%s' does not fit a %s network (%s names), %zu misfit%s: %s", name,
                                    layouts[d->layout].kind, layouts[d->layout].layout, lines, lines == 1 ? "" : "s",
                                    t.s),
                           FKT_HINT_OTHER_CODEC, "these may be the weights of another codec");
    fkt_text_clear(&t);
    return st;
}

/* A net that was derived from a hostile file must be able to run at all before anyone plans it. */
static fkt_status check_shapes(const struct fkt_family_draft *d)
{
    for (int i = 0; i < (d->family->guide ? 1 : 2); i++) {
        const struct fkt_net *n = &d->family->net[i];
        struct fkt_shape *shapes = NULL, want, got;
        uint32_t r = d->family->guide ? d->family->input : d->family->reduction,
                 in = i == FKT_CODEC_SIDE_ENCODER ? r : 1, out = i == FKT_CODEC_SIDE_ENCODER ? 1 : r;
        fkt_status st = fkt_alloc(&shapes, n->n_ops + 1);
        if (st == FKT_OK) st = fkt_net_shapes(n, in, in, shapes);
        want = (struct fkt_shape){i == FKT_CODEC_SIDE_ENCODER ? d->family->latent_channels : 3, out, out};
        got = st == FKT_OK ? shapes[n->n_ops] : want;
        fkt_free(shapes);
        if (st == FKT_E_ARG) st = FKT_E_MISMATCH; /* the sentence stands: which operation cannot be, and why */
        if (st != FKT_OK) return st;
        if (got.c != want.c || got.h != want.h || got.w != want.w)
            return fkt_fail(FKT_E_MISMATCH, "the %s gives (%u,%u,%u) where (%u,%u,%u) is wanted",
                            i == FKT_CODEC_SIDE_ENCODER ? "encoder" : "decoder", got.c, got.h, got.w, want.c, want.h,
                            want.w);
    }
    return FKT_OK;
}

fkt_status fkt_family_recognise(struct fkt_family *out, const struct fkt_family_source *source, char **report)
{
    struct fkt_family_config config;
    struct fkt_text misfits;
    struct fkt_family_draft d = {.family = out, .config = &config, .misfits = &misfits};
    struct census c;
    fkt_status st;
    *out = (struct fkt_family){0};
    if (report) *report = NULL;
    fkt_text_init(&misfits);
    fkt_family_config_init(&config);
    FKT_TRY(choose_layout(&d.layout, &c, source));
    FKT_TRY(check_sides(&d, &c, source));
    if (source->config) FKT_TRY(fkt_family_config_parse(&config, source->config, source->config_len, "config.json"));
    snprintf(out->kind, sizeof out->kind, "%s", layouts[d.layout].kind);
    snprintf(out->layout, sizeof out->layout, "%s", layouts[d.layout].layout);
    out->guide = is_guide(d.layout);
    FKT_TRY(layouts[d.layout].build(&d));
    check_config(&d);
    check_member(&d, source->codec);
    set_scales(&d, source->codec);
    if (out->net[0].n_ops && (out->guide || out->net[1].n_ops)) FKT_TRY(bind(&d));
    FKT_TRY(verdict(&d, source->name));
    FKT_TRY(check_shapes(&d));
out:
    if (st == FKT_E_MISMATCH && report && misfits.len) {
        *report = misfits.s;
        fkt_text_init(&misfits);
    }
    fkt_text_clear(&misfits);
    if (st != FKT_OK) fkt_family_clear(out);
    return st;
}

fkt_status fkt_family_open(struct fkt_family *out, const char *path, const char *codec, char **report)
{
    struct fkt_family_files files;
    struct fkt_safetensors *file[2] = {NULL, NULL};
    struct fkt_family_source source = {.name = path, .codec = codec};
    fkt_status st;
    *out = (struct fkt_family){0};
    if (report) *report = NULL;
    FKT_TRY(fkt_family_find(&files, path, codec));
    for (int i = 0; i < 2 && files.path[i]; i++) {
        st = fkt_safetensors_open(&file[i], files.path[i]);
        if (st == FKT_E_IO && files.path[1])
            st = fkt_hint(st, "a pair is wanted: NAME_encoder.safetensors and NAME_decoder.safetensors side by side");
        if (st != FKT_OK) goto out;
        source.file[i] = file[i];
    }
    source.config = (const char *)files.config;
    source.config_len = files.config_len;
    FKT_TRY(fkt_family_recognise(out, &source, report));
    for (int i = 0; i < 2; i++) {
        out->file[i] = file[i];
        out->path[i] = files.path[i];
        file[i] = NULL;
        files.path[i] = NULL;
    }
    out->config = files.config_path;
    files.config_path = NULL;
out:
    for (int i = 0; i < 2; i++) fkt_safetensors_free(file[i]);
    fkt_family_files_clear(&files);
    return st;
}

void fkt_family_clear(struct fkt_family *f)
{
    for (int i = 0; i < 2; i++) {
        fkt_weights_free(f->weights[i]);
        fkt_net_clear(&f->net[i]);
        fkt_safetensors_free(f->file[i]);
        fkt_free(f->path[i]);
    }
    fkt_free(f->config);
    *f = (struct fkt_family){0};
}
