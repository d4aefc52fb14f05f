# SPDX-License-Identifier: Apache-2.0
# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # From images at two sites to a network that carries a promise
#
# Every cell runs on the drawn images that come with the library (ten classes, 32 px). `python tutorial.py` runs all of
# them; `jupytext --to notebook tutorial.py` makes a notebook. Files go to the current folder.

# %%
import fedkt  # before NumPy: it sets the kernels that OpenBLAS uses

import numpy as np

data = fedkt.Dataset.open("demo:train", limit=1000)
test = fedkt.Dataset.open("demo:test", limit=300)
image, label = data[0]
print(len(data), "images of", ", ".join(data.classes))
print("the first:", image.shape, image.dtype, data.classes[label])

# %% [markdown]
# ## What all sites agree on
#
# A task names classes, networks and the budget. A plan says before any image is read how much noise that takes.

# %%
task = fedkt.Task.make(data.classes, epsilon=10, delta=1e-5, name="tutorial")
plan = fedkt.privacy(epsilon=10, delta=1e-5)
print(f"task {task.sha256[:12]}: epsilon {task.epsilon}, delta {task.delta}")
print(f"the mechanism has mu {plan.mu:.4f}; a class count gets noise of deviation {plan.sigma_count:.2f}")

# %% [markdown]
# ## At each site: moments
#
# Counts, sums and second moments of each class, as exact integers. They are as private as the images. Two sites share
# the records here: the first has the even ones.

# %%
pipeline = fedkt.Pipeline(task)
numbers = np.arange(len(data))
north = pipeline.moments(data, indices=numbers[0::2])
south = pipeline.moments(data, indices=numbers[1::2])
print(north, south)

# %% [markdown]
# ## One release
#
# The ledger is debited before noise is drawn, and refuses the same images a second time. (Here one process sees both
# sites' moments. In a federation, `fedkt.join` and `fedkt.serve`, nobody does.)

# %%
release = fedkt.release(task, [north, south], ledger="ledger.db", out="release.safetensors")
print(release)
try:
    fedkt.release(task, [north, south], ledger="ledger.db")
    raise SystemExit("the ledger allowed a second release")
except fedkt.BudgetError as refused:
    print("refused:", refused)

# %% [markdown]
# ## From the release alone: classifiers
#
# A head has a closed form, and takes no training. A whole model is a head with its encoders: pixels in, classes out.

# %%
heads = release.heads()
accuracy = fedkt.evaluate_heads(heads, pipeline, test)
for kind, share in accuracy.items():
    print(f"{kind:12} {share:.1%} of {len(test)} real test images")
assert accuracy["lda"] > 0.8

whole = release.whole("lda")
whole.save("whole.onnx")
print("may it be called private?", whole.not_private or "yes")

# %% [markdown]
# ## Images, as many as you like
#
# They are drawn from the noised moments, so they cost no further privacy, and a seed repeats them.

# %%
images, labels = release.images(per_class=8)
print(images.shape, images.dtype, "labels", np.unique(labels))
assert (release.images(per_class=8)[0] == images).all()

way = release.generate("synthetic", per_class=8)  # a folder: images, dataset card, certificate, a sheet of samples
print(f"synthetic/grid.png shows {len(images)} images; guided: {way}")

# %% [markdown]
# ## A network
#
# It sees synthetic images alone; the release's own head can label them softly. Its file says what it may claim.

# %%
model = fedkt.train(release, per_class=40, network="resnet8", epochs=3, batch=50, teacher="head", seed=1)
found = fedkt.evaluate(model, test)
print(f"resnet8, three epochs on 400 synthetic images: {found.accuracy:.1%}; private: {model.origin['is_private']}")
model.save("model.safetensors")
assert model.origin["is_private"] and model.origin["epsilon"] == 10

# %% [markdown]
# ## The sum that nobody sees
#
# What a federation adds: each site's vector leaves it under masks, and the server learns only the sum. Both sides are
# state machines; messages are bytes, and any transport can carry them.

# %%
keys = [fedkt.Key.make() for _ in range(5)]
vectors = np.arange(15).reshape(5, 3)
params = fedkt.SecAggParams.find([key.public for key in keys], length=3, bound=100, dropped=1, corrupt=1)
server = fedkt.SecAggServer(params)
sites = [fedkt.SecAggClient(params, i, key.secret, vectors[i]) for i, key in enumerate(keys)]
carried = 0
while server.state != "unmask":
    told = server.next()
    if told is None:
        server.close_phase()
        continue
    to, message = told
    sites[to].recv(message)
    answer = sites[to].send()
    carried += len(message) + len(answer)
    server.recv(to, answer)
server.unmask()
total, survivors = server.total()
print(f"sum {total} of {survivors.sum()} sites, {carried} bytes carried")
assert (total == vectors.sum(axis=0)).all()
