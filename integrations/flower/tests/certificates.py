# SPDX-License-Identifier: Apache-2.0
"""certificates.py - a certificate authority and a server's certificate for loopback, and keys of nodes as ssh-keygen
makes them: what docs/flower.md does with openssl and ssh-keygen."""

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PEM = serialization.Encoding.PEM
PLAIN = serialization.NoEncryption()


def _builder(subject, issuer, key):
    now = datetime.datetime.now(datetime.timezone.utc)
    name = [x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)]) for text in (subject, issuer)]
    out = x509.CertificateBuilder().subject_name(name[0]).issuer_name(name[1]).public_key(key.public_key())
    out = out.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(hours=1))
    return out.not_valid_after(now + datetime.timedelta(days=1))


def make_tls(folder):
    """ca.crt, server.pem and server.key."""
    ca, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    root = _builder("test authority", "test authority", ca)
    root = root.add_extension(x509.BasicConstraints(True, None), True).add_extension(usage, True)
    root = root.add_extension(x509.SubjectKeyIdentifier.from_public_key(ca.public_key()), False)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    server = _builder("localhost", "test authority", key)
    server = server.add_extension(x509.SubjectAlternativeName(names), False)
    server = server.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.public_key()), False)
    (folder / "ca.crt").write_bytes(root.sign(ca, hashes.SHA256()).public_bytes(PEM))
    (folder / "server.pem").write_bytes(server.sign(ca, hashes.SHA256()).public_bytes(PEM))
    (folder / "server.key").write_bytes(key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, PLAIN))


def make_node_key(path):
    """path: the secret key of a node; path.pub: its public part."""
    key = ec.generate_private_key(ec.SECP384R1())
    path.write_bytes(key.private_bytes(PEM, serialization.PrivateFormat.OpenSSH, PLAIN))
    path.chmod(0o600)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    path.with_name(path.name + ".pub").write_bytes(public)
