"""Certificate authorities and certificates for TLS, made by the program `openssl`."""

from __future__ import annotations

import subprocess
from pathlib import Path

from codebatch.engines.opening import EngineOptions

_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class CertificateFiles:
    """An authority, and the certificate and key of one node that it has signed."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self.authority = directory / "authority.pem"
        self.certificate = directory / "node.pem"
        self.key = directory / "node.key"
        authority_key, request = directory / "authority.key", directory / "node.csr"
        _openssl("req", "-x509", *_NEW_KEY, "-subj", "/CN=authority", "-keyout", authority_key, "-out", self.authority)
        _openssl("req", *_NEW_KEY, "-subj", "/CN=node", "-keyout", self.key, "-out", request)
        signer = ("-CA", self.authority, "-CAkey", authority_key, "-CAcreateserial")
        _openssl("x509", "-req", "-in", request, *signer, "-days", "2", "-out", self.certificate)

    @property
    def options(self) -> EngineOptions:
        """The options of a client with this certificate."""
        return EngineOptions(tls_ca=self.authority, tls_cert=self.certificate, tls_key=self.key)

    @property
    def arguments(self) -> list[str]:
        """The arguments of `dask scheduler` and `dask worker`."""
        files = {"--tls-ca-file": self.authority, "--tls-cert": self.certificate, "--tls-key": self.key}
        return [text for option, path in files.items() for text in (option, str(path))]


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=30)
