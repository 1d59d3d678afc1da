"""Kubernetes' REST API, objects as JSON. Kubernetes' own client reads addresses and credentials from the kubeconfig."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import urllib3
from kubernetes.client import ApiClient
from kubernetes.config import new_client_from_config

Object: TypeAlias = dict[str, Any]
_TIMEOUT_S: Final = 120.0
_NOT_FOUND: Final = 404


class ApiRefused(RuntimeError):
    """The API server refused a request; ``status`` is that of HTTP, ``reason`` Kubernetes' word."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason


class ApiUnreachable(OSError):
    """No API server answers."""


class UnknownKind(LookupError):
    """The cluster does not serve a kind; its CRD is missing."""


@dataclass(frozen=True)
class Resource:
    """A kind as the cluster serves it."""

    api_version: str
    plural: str
    namespaced: bool

    def path(self, namespace: str | None, name: str = "", *below: str) -> str:
        """The path of all objects, of one, or of a part of one."""
        root = "/api" if "/" not in self.api_version else "/apis"
        place = [f"namespaces/{namespace}"] if self.namespaced and namespace else []
        return "/".join([root, self.api_version, *place, self.plural, *([name] if name else []), *below])


class Api:
    """One API server."""

    def __init__(self, kubeconfig: str) -> None:
        self._client: ApiClient = new_client_from_config(kubeconfig, persist_config=False)
        self._kinds: dict[str, Mapping[str, Resource]] = {}
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # a kubeconfig may ask for no check

    def call(
        self, method: str, path: str, body: object = None, *, kind: str = "application/json", **query: str
    ) -> Object:
        """The JSON of an answer. Raises ApiRefused and ApiUnreachable."""
        text: Object = json.loads(self.text(method, path, body, kind=kind, **query) or "{}")
        return text

    def text(self, method: str, path: str, body: object = None, *, kind: str = "application/json", **query: str) -> str:
        """An answer as it came."""
        headers = {"Accept": "application/json, */*", **({"Content-Type": kind} if body is not None else {})}
        request = self._client.param_serialize(
            method,
            path,
            header_params=headers,
            query_params=list(query.items()),
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            answer = self._client.call_api(*request, _request_timeout=_TIMEOUT_S)
            data: str = answer.read().decode(errors="replace")
        except urllib3.exceptions.HTTPError as error:
            raise ApiUnreachable(f"{self._client.configuration.host}: {error}") from error
        if answer.status >= 400:
            raise _refusal(answer.status, data)
        return data

    def resource(self, api_version: str, kind: str) -> Resource:
        """What the cluster serves of a kind. Raises UnknownKind."""
        found = self._of(api_version).get(kind)
        if found is None:
            raise UnknownKind(f"the cluster serves no {api_version} {kind}")
        return found

    def forget_kinds(self) -> None:
        """Look again at what is served, after a change of CRDs."""
        self._kinds.clear()

    def _of(self, api_version: str) -> Mapping[str, Resource]:
        if api_version not in self._kinds:
            try:
                served = self.call("GET", f"/{'apis' if '/' in api_version else 'api'}/{api_version}")["resources"]
            except ApiRefused as refusal:
                if refusal.status != _NOT_FOUND:
                    raise
                return {}
            whole = [one for one in served if "/" not in one["name"]]
            self._kinds[api_version] = {
                one["kind"]: Resource(api_version, one["name"], one["namespaced"]) for one in whole
            }
        return self._kinds[api_version]


def _refusal(status: int, data: str) -> ApiRefused:
    try:
        told = json.loads(data)
        return ApiRefused(status, str(told.get("reason", "")), str(told.get("message", data))[:2000])
    except (ValueError, AttributeError):
        return ApiRefused(status, "", data[:2000])
