/* SPDX-License-Identifier: Apache-2.0 */
/* generate_card.h - the files that describe the images of a folder, for generate.c. */
#ifndef FKT_PIPELINE_GENERATE_CARD_H
#define FKT_PIPELINE_GENERATE_CARD_H

#include "pipeline/generate_images.h"

#define FKT_PUSH_FOLDER "data" /* of the images in the layout for a hub */

/* README.md, certificate.json, images.json, of an ImageFolder croissant.json, for a hub .gitattributes; into m->folder,
 * when the images are there. */
FKT_MUST_USE fkt_status fkt_making_card(const struct fkt_making *m, const char fingerprint[FKT_SHA256_HEX]);

#endif
