/* SPDX-License-Identifier: Apache-2.0 */
/* personalize_network.c - the network whose last layer the sites tune: read from a file, or trained in this run on
 * images of a release, exactly as `fedkt train --release` does with the same numbers (train_run.c). Use that verb
 * for long trainings: it keeps checkpoints. */
#include "cli/learning/personalize.h"

#include "base/output.h"

#include "classifier/model.h"

#include <string.h>

static fkt_status idle(int given, const char *option)
{
    return given ? fkt_fail_hint(FKT_E_ARG, "the network of --model is already trained", "%s needs --release", option)
                 : FKT_OK;
}

static fkt_status check_idle(const struct cli_personalize *a)
{
    const struct cli_train *t = &a->train;
    fkt_status st;
    FKT_TRY(idle(t->architecture_given, "--network"));
    FKT_TRY(idle(t->per_class_given, "--per-class"));
    FKT_TRY(idle(t->fresh, "--fresh"));
    FKT_TRY(idle(a->epochs_given, "--epochs"));
    FKT_TRY(idle(t->settings.weights != NULL, "--weights"));
    FKT_TRY(idle(t->out != NULL, "--model-out"));
out:
    return st;
}

static fkt_status check_output(const struct cli_personalize *a)
{
    const char *const ins[] = {a->train.release, a->data.path, a->test.path, a->train.settings.weights, a->out};
    const char *out = a->train.out;
    fkt_status st = FKT_OK;
    if (!out) return FKT_OK;
    if (a->out && !strcmp(out, a->out)) return fkt_fail(FKT_E_ARG, "--out and --model-out are both '%s'", out);
    for (size_t i = 0; i < CLI_COUNT(ins); i++) FKT_TRY(cli_output_not_an_input("--model-out", out, ins[i]));
    FKT_TRY(fkt_output_file(out, a->run.force));
out:
    return st;
}

fkt_status cli_personalize_network_check(struct cli_personalize *a)
{
    struct cli_train *t = &a->train;
    fkt_status st;
    if (!a->model && !t->release)
        return fkt_fail_hint(FKT_E_ARG, "give a trained network with --model, or train one with --release",
                             "no network: neither --model nor --release is given");
    if (a->model && t->release) return fkt_fail(FKT_E_ARG, "--model and --release exclude each other");
    if (a->size > FKT_MODEL_SIZE_MAX) return fkt_fail(FKT_E_ARG, "--size must be at most %d", FKT_MODEL_SIZE_MAX);
    if (a->size && t->release) return fkt_fail(FKT_E_ARG, "--size: a release has one size");
    if (a->model) return check_idle(a);
    t->run = a->run;
    t->recipe.seed = a->seed;
    FKT_TRY(cli_not_an_input(a->out, t->release));
    FKT_TRY(check_output(a));
    FKT_TRY(cli_train_check(t));
out:
    return st;
}

fkt_status cli_personalize_network_open(struct cli_personalized *p)
{
    fkt_status st;
    if (p->asked->model) {
        FKT_TRY(cli_model_load(&p->network, p->asked->model, (uint32_t)p->asked->size));
        cli_model_tell_size(p->network, p->asked->model, p->asked->size, &p->asked->run);
        goto out;
    }
    p->training.asked = &p->asked->train;
    FKT_TRY(cli_train_prepare(&p->training));
    FKT_TRY(fkt_model_copy(&p->network, p->training.start));
out:
    return st;
}

fkt_status cli_personalize_network_train(struct cli_personalized *p)
{
    struct cli_training *t = &p->training;
    fkt_status st;
    if (!t->asked) return FKT_OK;
    st = cli_train_learn(t);
    if (st == FKT_E_STOPPED)
        st = fkt_fail_hint(
            st, "'fedkt train --release' with --checkpoint can be continued later; give its model with --model",
            "stopped while training the network; nothing is kept");
    FKT_TRY(st);
    if (t->asked->out) FKT_TRY(fkt_model_save(t->model, t->asked->out, t->asked->run.force));
    fkt_model_free(p->network);
    p->network = t->model;
    t->model = NULL;
out:
    return st;
}
