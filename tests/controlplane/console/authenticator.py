"""A passkey device in software: what WebAuthn says a browser and its authenticator do, on P-256."""

import hashlib
import json
import secrets
import struct
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2 import cbor
from fido2.utils import websafe_encode

USER_PRESENT, ATTESTED = 0x01, 0x40


@dataclass
class Device:
    """origin, host: of the page that it is used on. count: goes up with each use."""

    origin: str = "http://testserver"
    host: str = "testserver"
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    key_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    count: int = 0

    def create(self, options: dict[str, Any]) -> dict[str, Any]:
        """The answer to `navigator.credentials.create`."""
        numbers = self.key.public_key().public_numbers()
        point = {-2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
        public = cbor.encode({1: 2, 3: -7, -1: 1, **point})
        attested = bytes(16) + struct.pack(">H", len(self.key_id)) + self.key_id + public
        data = self._data(USER_PRESENT | ATTESTED) + attested
        attestation = cbor.encode({"fmt": "none", "attStmt": {}, "authData": data})
        return self._answer(attestationObject=attestation, clientDataJSON=self._client("webauthn.create", options))

    def get(self, options: dict[str, Any]) -> dict[str, Any]:
        """The answer to `navigator.credentials.get`."""
        self.count += 1
        data, client = self._data(USER_PRESENT), self._client("webauthn.get", options)
        signature = self.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        return self._answer(authenticatorData=data, clientDataJSON=client, signature=signature)

    def _data(self, flags: int) -> bytes:
        return hashlib.sha256(self.host.encode()).digest() + struct.pack(">BI", flags, self.count)

    def _client(self, kind: str, options: dict[str, Any]) -> bytes:
        return json.dumps({"type": kind, "challenge": options["challenge"], "origin": self.origin}).encode()

    def _answer(self, **response: bytes) -> dict[str, Any]:
        name = websafe_encode(self.key_id)
        encoded = {key: websafe_encode(value) for key, value in response.items()}
        return {"id": name, "rawId": name, "type": "public-key", "response": encoded, "clientExtensionResults": {}}
