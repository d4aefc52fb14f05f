/* SPDX-License-Identifier: Apache-2.0 */
/* fedkt.h - the stable interface: all of its headers, in the order in which data passes through them, and the
 * conventions that every header keeps.
 *
 *   version.h          the version of these headers
 *   status.h           what a call returns, and the text behind a failure
 *   image.h            labelled image sets in and out; splits, partitions over sites, sample sheets
 *   codec.h            the frozen public autoencoder and its public calibration
 *   moments.h          coordinates in a public ball, exact class moments
 *   privacy.h          what a release costs
 *   secagg.h           keys and phases of secure aggregation
 *   federation.h       the part of a task that names the sites
 *   service.h          the part of a task that names the server; the operator's signature
 *   keys.h             key files, their public parts, the roster of a federation
 *   task.h             what all sites agree on and sign
 *   records.h          which images are in some moments, for the ledger
 *   pipeline.h         images to moments under a task
 *   ledger.h           what a dataset has spent, in a file
 *   release.h          moments with noise: the file, the certificate, the class Gaussians
 *   synth.h            class Gaussians and samples of them
 *   generate.h         synthetic images from a release
 *   classifier.h       closed-form heads and scores
 *   heads.h            closed-form heads from a release, scored on images
 *   learn.h            ResNets that learn from images in memory; their files, their evaluation
 *   train.h            training sets, from images or a release; the personalised protocol
 *   training_source.h  the images of each epoch of a training run
 *   whole.h            a head with its encoders as one model, pixels in and classes out
 *   model_data.h       a model and its images: classes by name, evaluation, training further
 *   server.h           the server's side of a task over all its rounds
 *   client.h           a site's side of a task over all its rounds
 *   join.h             a site's part in a federation over HTTPS, in one call; what it would send and cost
 *   cohorts.h          a task in cohorts: the folder of its tasks, and the sum of their releases
 *   serve.h            the server of a task over HTTPS, in one call
 *   verify.h           checks of the public files of a finished task
 *   sweep.h            a simulated federation at several epsilons, from images to accuracies
 *   machine.h          whether BLAS recognises this processor, and what to set where it does not
 *
 * Headers in advanced/ are for programs that replace a part: another transport, other statistics. They may change with
 * every minor version. advanced/advanced.h includes all of them. docs/abi.md has the rules for both tiers.
 *
 * Conventions
 *   Answers    A call that can fail returns fkt_status; FKT_OK is 0. After a failure fkt_error_text() holds a sentence
 *              and fkt_error_hint() perhaps what to do next, per thread. Outputs are then NULL, empty or as before.
 *   NULL       is allowed where a header says so and nowhere else. Every _free takes NULL, every _clear a zeroed
 *              struct.
 *   Life       A handle comes from new, open, make or load and goes with free or close. A struct of the caller's is
 *              filled by a call and emptied with clear.
 *   Ownership  "borrows": until the call returns. "copies": keep or free yours. "takes": yours no longer.
 *              "gives": yours to free with the function named.
 *   Threads    Objects that are only read may be shared. An object that is being changed belongs to one thread.
 *              The library keeps no global state but the per-thread sentence, and runs BLAS on one thread inside
 *              each of its calls, so that results do not depend on the number of BLAS threads. The host's number is put
 *              back; do not set another one from a second thread while a call is under way.
 *   Arrays     row-major; the comment beside a pointer gives its shape, e.g. (K, m).
 *   Randomness Noise and keys come from the operating system: pass NULL where a struct fkt_entropy is asked for. Seeds
 *              that appear in headers choose public things (splits, samples), never noise; but for those called
 *              insecure_seed, which are for tests, and whose artifacts say NOT PRIVATE.
 *   Output     The library does not print, exit or abort. Files appear whole or not at all.
 *   Privacy    Un-noised moments (moments.h) are as secret as the images. What fkt_privacy_release has written may be
 *              shown to anyone, and everything after it costs nothing more. What fkt_privacy_share has written is
 *              PRIVATE until it is masked: one share of noise is too little, only a total of them may be shown.
 */
#ifndef FEDKT_FEDKT_H
#define FEDKT_FEDKT_H

#include "fedkt/classifier.h"
#include "fedkt/client.h"
#include "fedkt/codec.h"
#include "fedkt/cohorts.h"
#include "fedkt/federation.h"
#include "fedkt/generate.h"
#include "fedkt/heads.h"
#include "fedkt/image.h"
#include "fedkt/join.h"
#include "fedkt/keys.h"
#include "fedkt/learn.h"
#include "fedkt/ledger.h"
#include "fedkt/machine.h"
#include "fedkt/model_data.h"
#include "fedkt/moments.h"
#include "fedkt/pipeline.h"
#include "fedkt/privacy.h"
#include "fedkt/records.h"
#include "fedkt/release.h"
#include "fedkt/secagg.h"
#include "fedkt/serve.h"
#include "fedkt/server.h"
#include "fedkt/service.h"
#include "fedkt/status.h"
#include "fedkt/sweep.h"
#include "fedkt/synth.h"
#include "fedkt/task.h"
#include "fedkt/teacher.h"
#include "fedkt/train.h"
#include "fedkt/training_source.h"
#include "fedkt/verify.h"
#include "fedkt/version.h"
#include "fedkt/whole.h"

#endif
