# SPDX-License-Identifier: Apache-2.0
"""test_verify.py - what was pulled is what `fedkt codec list`, `info` and `verify` look at.

Usage: test_verify.py FEDKT [test...]
"""

import json
import math
import os
import struct
import subprocess

from test_pull import CONFIG, WEIGHTS, Pull, binary


def tiny_weights():
    """A network of the right shape that has learnt nothing, in diffusers' AutoencoderTiny layout."""
    shapes = {}

    def conv(name, out, inside=64, bias=True):
        shapes[f"{name}.weight"] = [out, inside, 3, 3]
        if bias:
            shapes[f"{name}.bias"] = [out]

    def blocks(side, *numbers):
        for number in numbers:
            for step in (0, 2, 4):
                conv(f"{side}.layers.{number}.conv.{step}", 64)

    conv("encoder.layers.0", 64, 3)
    blocks("encoder", 1, 3, 4, 5, 7, 8, 9, 11, 12, 13)
    blocks("decoder", 2, 3, 4, 7, 8, 9, 12, 13, 14, 17)
    for side, numbers in (("encoder", (2, 6, 10)), ("decoder", (6, 11, 16))):
        for number in numbers:
            conv(f"{side}.layers.{number}", 64, bias=False)
    conv("encoder.layers.14", 4)
    conv("decoder.layers.0", 64, 4)
    conv("decoder.layers.18", 3)
    header, at = {}, 0
    for name, shape in shapes.items():
        size = 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(at)


class Verifies(Pull):
    """What was pulled is what info and verify look at."""

    def ask(self, *words):
        line = [binary.FEDKT, "codec", *words]
        return subprocess.run(line, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=60)

    def state(self, name):
        return {codec["name"]: codec.get("state") for codec in json.loads(self.ask("list", "--json").stdout)}[name]

    def test_pulled_weights(self):
        config = {"_class_name": "AutoencoderTiny", "latent_channels": 4, "scaling_factor": 1.0}
        self.hub.files = {WEIGHTS: tiny_weights(), CONFIG: json.dumps(config).encode()}
        self.assertIn("are not on this machine", self.ask("info", "taesd").stderr)
        self.pull()
        self.whole()
        found = json.loads(self.ask("list", "--json").stdout)
        here = {codec["name"]: codec for codec in found if codec["here"] and not codec["shipped"]}
        self.assertEqual(set(here), {"taesd"})
        self.assertGreater(here["taesd"]["bytes"], len(self.hub.files[WEIGHTS]))
        info = json.loads(self.ask("info", "taesd", "--json").stdout)
        self.assertEqual((info["dim"], info["layout"], info["calibration"]), (64, "diffusers", None))
        self.assertEqual(info["parameters"], {"encoder": 1222532, "decoder": 1222531})
        # zeros everywhere: the hashes are right, and the image is not
        self.assertIn("does not reconstruct an image", self.ask("verify", "taesd").stderr)
        self.assertEqual(here["taesd"]["state"], "here")
        self.place.rename(self.place.with_name("dc-ae-f32c32-in"))
        self.assertEqual(self.state("dc-ae-f32c32-in"), "another codec")
        self.place.with_name("dc-ae-f32c32-in").rename(self.place)
        record = self.place / "fedkt-weights.json"
        text = record.read_text()
        record.write_text(text.replace('"codec": "taesd"', '"codec": "taesdxl"'))
        self.assertIn("were pulled as 'taesdxl', not as 'taesd'", self.ask("verify", "taesd").stderr)
        record.write_text(text.replace(f'"size": {len(self.hub.files[WEIGHTS])}', '"size": 7'))
        self.assertIn("but 7 in the record", self.ask("verify", "taesd").stderr)
        record.write_text(text)
        path = self.place / WEIGHTS
        with open(path, "r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"\1")
        self.assertIn("is not what was pulled", self.ask("verify", "taesd").stderr)
        path.write_bytes(b"cut")
        self.assertEqual(self.state("taesd"), "incomplete")
        path.unlink()
        self.assertEqual(self.state("taesd"), "not here")
        done = self.ask("verify", "taesd")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "was pulled, and is now missing|are not on this machine")


if __name__ == "__main__":
    binary.main()
