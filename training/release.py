# SPDX-License-Identifier: Apache-2.0
"""A sketch of fedkt's release in floating point, for choices on the public proxy: whitening, gain-shape coordinates,
class moments with Gaussian noise of a given mu, class Gaussians, samples, and a noise-aware LDA. The C code is the real
one; this one is on the device and need not be exact."""
import math

import torch

GAMMA = 0.35
RADIUS2 = 1 + GAMMA ** 2


class Calibration:
    """u = W (z - centre), the top k directions whitened, and the constants of the coordinates."""

    def __init__(self, z, k):
        z = z.double()
        self.centre = z.mean(0)
        values, vectors = torch.linalg.eigh(torch.cov(z.T))
        values, vectors = values.flip(0)[:k].clamp(min=1e-6 * float(values[-1])), vectors.flip(1)[:, :k]
        self.map, self.unmap = (vectors / values.sqrt()).T.float(), (vectors * values.sqrt()).float()
        self.centre = self.centre.float()
        logs = self.forward(z.float()).norm(dim=1).log()
        self.log_mean, self.log_spread = float(logs.mean()), 3 * float(logs.std())

    @torch.autocast("cuda", enabled=False)
    def forward(self, z):
        return (z - self.centre) @ self.map.T

    @torch.autocast("cuda", enabled=False)
    def backward(self, u):
        return self.centre + u @ self.unmap.T

    @torch.autocast("cuda", enabled=False)
    def coordinates(self, z):
        u = self.forward(z)
        norm = u.norm(dim=1, keepdim=True).clamp(min=1e-12)
        g = GAMMA * ((norm.log() - self.log_mean) / self.log_spread).clamp(-1, 1)
        return torch.cat([u / norm, g], 1)

    @torch.autocast("cuda", enabled=False)
    def inverse(self, w):
        v, g = w[:, :-1], w[:, -1:]
        return torch.exp(self.log_mean + self.log_spread * g / GAMMA) * v / v.norm(dim=1, keepdim=True).clamp(min=1e-12)


class Gaussians:
    """One part. mu: of the whole release (None: no noise); shares of mu^2 for count, this part's sum and moment."""

    def __init__(self, w, labels, classes, mu=None, shares=(0.01, 0.24, 0.75), floor=1e-6):
        w, self.classes, m = w.double(), classes, w.shape[1]
        dev = w.device
        self.mean, self.cov, self.count = [], [], []
        s_n, s_s, s_m = ((1 / (mu * math.sqrt(shares[0])), math.sqrt(RADIUS2) / (mu * math.sqrt(shares[1])),
                          RADIUS2 / (mu * math.sqrt(shares[2]))) if mu else (0, 0, 0))
        for k in range(classes):
            x = w[labels == k]
            noise = torch.randn(m, m, device=dev, dtype=torch.double) * s_m
            noise = noise.triu(1) / math.sqrt(2)
            noise = noise + noise.T + torch.diag(torch.randn(m, device=dev, dtype=torch.double)) * s_m
            n = max(len(x) + float(torch.randn(())) * s_n, 1)
            mean = (x.sum(0) + torch.randn(m, device=dev, dtype=torch.double) * s_s) / n
            cov = (x.T @ x + noise) / n - torch.outer(mean, mean) + torch.eye(m, device=dev) * (s_s / n) ** 2
            self.count.append(n), self.mean.append(mean), self.cov.append(cov)
        self.mean, self.cov = torch.stack(self.mean), torch.stack(self.cov)
        self.count = torch.tensor(self.count, device=dev, dtype=torch.double)
        self.edge = math.sqrt(2 * m) * s_m / self.count
        values, vectors = torch.linalg.eigh(self.cov)
        top = values[:, -1:]
        self.factor = (vectors * values.clamp(min=0).maximum(floor * top).sqrt().unsqueeze(1)).float()
        self.s_s, self.s_m = s_s, s_m

    @torch.autocast("cuda", enabled=False)
    def sample(self, labels, widen=1.0):
        e = torch.randn(len(labels), self.mean.shape[1], 1, device=self.mean.device)
        return self.mean[labels].float() + widen * (self.factor[labels] @ e).squeeze(2)

    def lda(self):
        """(weight, bias) of a linear head: pooled covariance, eigenvalues floored at the edge of its noise."""
        share = self.count / self.count.sum()
        pooled = (share.view(-1, 1, 1) * self.cov).sum(0)
        values, vectors = torch.linalg.eigh(pooled)
        m = pooled.shape[0]
        edge = math.sqrt(2 * m) * self.s_m * math.sqrt(self.classes) / float(self.count.sum())
        values = values.clamp(min=max(edge, 1e-6 * float(values[-1])))
        doubt = (self.s_s / self.count) ** 2
        centre = (share.view(-1, 1) * self.mean).sum(0)
        spread = ((self.mean - centre) ** 2).mean(1)
        keep = (1 - doubt / spread.clamp(min=1e-12)).clamp(0, 1).view(-1, 1)
        mean = centre + keep * (self.mean - centre)
        inverse = (vectors / values) @ vectors.T
        weight = mean @ inverse
        return weight.float(), (-0.5 * (weight * mean).sum(1) + share.log()).float()


@torch.autocast("cuda", enabled=False)
def score(head, w):
    return w @ head[0].T + head[1]
