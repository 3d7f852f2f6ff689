"""A stand-in for the Globus Compute web service: our own code, for one machine without a network.

It answers the routes that the real SDK and the real endpoint call, and moves tasks and results through a real
RabbitMQ. Its policies (what it does while an endpoint is offline, its error texts, how long it keeps things)
are its own and prove nothing about the hosted service. Run by the endpoints' Python:
``python service.py PORT AMQP_URL``.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pika
from globus_compute_common.messagepack import pack, unpack
from globus_compute_common.messagepack.message_types import EPStatusReport, Result, Task
from globus_compute_sdk.serialize import ComputeSerializer

IDENTITY = "6d6f6d65-6d61-706c-8000-000000000001"
EXCHANGE = "stand"
LARGEST = 10 << 20
ONLINE = 2.5  # heartbeats of silence after which an endpoint counts as offline
START_SECONDS = 60


class Refused(Exception):
    """An answer other than 200."""

    def __init__(self, status: int, code: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.body = status, {"code": code, "reason": reason, "http_status_code": status}


class Broker(threading.Thread):
    """One connection to RabbitMQ, made again when it breaks; other threads hand it work."""

    def __init__(self, url: str, state: State) -> None:
        super().__init__(name="broker", daemon=True)
        self.url, self.state = url, state
        self.ready = threading.Event()
        self._connection: pika.BlockingConnection | None = None
        self._channel: Any = None

    def run(self) -> None:
        while True:
            try:
                self._serve()
            except Exception as error:
                print(f"broker: {error!r}; again in a second", flush=True)
            self.ready.clear()
            time.sleep(1)

    def _serve(self) -> None:
        self._connection = pika.BlockingConnection(pika.URLParameters(self.url))
        self._channel = self._connection.channel()
        self._channel.exchange_declare(EXCHANGE, "direct", durable=True)
        for name, take in (("results", self._result), ("heartbeats", self._heartbeat)):
            self._declare(name)
            self._channel.basic_consume(name, take)
        for name in list(self.state.queues):
            self._declare(name)
        self.ready.set()
        self._channel.start_consuming()

    def _declare(self, name: str) -> None:
        self._channel.queue_declare(name, durable=True)
        self._channel.queue_bind(name, EXCHANGE, name)

    def _in_thread(self, work: Any) -> None:
        done = threading.Event()
        failed: list[Exception] = []

        def call() -> None:
            try:
                work()
            except Exception as error:
                failed.append(error)
            done.set()

        if not self.ready.wait(20) or self._connection is None:
            raise Refused(503, "RESOURCE_UNAVAILABLE", "the stand's broker is away")
        self._connection.add_callback_threadsafe(call)
        if not done.wait(20) or failed:
            raise Refused(503, "RESOURCE_UNAVAILABLE", f"the stand's broker does not answer {failed}")

    def declare(self, *names: str) -> None:
        self.state.queues.update(names)
        self._in_thread(lambda: [self._declare(name) for name in names])

    def publish(self, queue: str, body: bytes, **properties: Any) -> None:
        made = pika.BasicProperties(delivery_mode=2, **properties)
        self._in_thread(lambda: self._channel.basic_publish(EXCHANGE, queue, body, made))

    def _result(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        message = unpack(body)
        if isinstance(message, Result):
            group = self.state.result(message)
            if group:
                self._channel.basic_publish(EXCHANGE, f"tg.{group}", body, pika.BasicProperties(delivery_mode=2))
        channel.basic_ack(method.delivery_tag)

    def _heartbeat(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        message = unpack(body)
        if isinstance(message, EPStatusReport):
            self.state.heartbeat(str(message.endpoint_id), message.global_state)
        channel.basic_ack(method.delivery_tag)


class State:
    """Everything the stand knows."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.lock = threading.Condition()
        self.functions: dict[str, dict[str, Any]] = {}
        self.endpoints: dict[str, dict[str, Any]] = {}
        self.tasks: dict[str, dict[str, Any]] = {}
        self.children: dict[str, dict[str, Any]] = {}
        self.queues: set[str] = set()
        self.faults: list[dict[str, Any]] = []
        self.calls: list[list[Any]] = []
        self.broker = Broker(url, self)
        self.broker.start()

    # -- from the broker ----------------------------------------------------------------------------------

    def result(self, message: Result) -> str | None:
        with self.lock:
            task = self.tasks.get(str(message.task_id))
            if task is None or "completion_t" in task:
                return None
            failed = message.error_details is not None
            task |= {
                "status": "failed" if failed else "success",
                "exception" if failed else "result": message.data,
                "completion_t": str(time.time()),
                "details": message.details,
            }
            return str(task["task_group_id"])

    def heartbeat(self, endpoint_id: str, said: dict[str, Any]) -> None:
        with self.lock:
            if endpoint_id in self.endpoints:
                found = self.endpoints[endpoint_id]
                found["seen"] = 0.0 if said.get("heartbeat_period") == 0 else time.time()
                found["period"] = said.get("heartbeat_period") or found.get("period", 30)
                waiting = [c for c in self.children.values() if c["parent"] == endpoint_id and c["waiting"]]
            elif endpoint_id in self.children:
                child, waiting = self.children[endpoint_id], []
                child["error"] = said.get("error")
                child["seen"] = 0.0 if said.get("error") or said.get("heartbeat_period") == 0 else time.time()
                child["said"] = said
                child["waiting"] = False
            else:
                return
            self.lock.notify_all()
        for child in waiting:  # its endpoint was away at submission; the start is asked for again
            threading.Thread(target=self.start_child, args=(child,), daemon=True).start()

    # -- endpoints ----------------------------------------------------------------------------------------

    def publisher(self, queue: str) -> dict[str, Any]:
        kwargs = {"exchange": EXCHANGE, "routing_key": queue, "mandatory": True, "properties": {"delivery_mode": 2}}
        return {"connection_url": self.url, "exchange": EXCHANGE, "queue": queue, "queue_publish_kwargs": kwargs}

    def register(self, endpoint_id: str, body: dict[str, Any]) -> dict[str, Any]:
        commands = f"{endpoint_id}.commands"
        self.broker.declare(commands)
        with self.lock:
            old = self.endpoints.get(endpoint_id, {})
            self.endpoints[endpoint_id] = {
                **body,
                "uuid": endpoint_id,
                "seen": time.time(),
                "period": old.get("period", 30),
            }
        return {
            "endpoint_id": endpoint_id,
            "command_queue_info": {"connection_url": self.url, "queue": commands},
            "heartbeat_queue_info": self.publisher("heartbeats"),
        }

    def online(self, endpoint_id: str) -> bool:
        found = self.endpoints[endpoint_id]
        return bool(time.time() - found["seen"] < ONLINE * found["period"])

    def known(self, endpoint_id: str) -> dict[str, Any]:
        if endpoint_id not in self.endpoints:
            raise Refused(404, "ENDPOINT_NOT_FOUND", f"the stand has no endpoint {endpoint_id}")
        return self.endpoints[endpoint_id]

    def start_child(self, child: dict[str, Any]) -> None:
        tasks = f"{child['id']}.tasks"
        self.broker.declare(tasks)
        creds = {
            "endpoint_id": child["id"],
            "task_queue_info": {"connection_url": self.url, "exchange": EXCHANGE, "queue": tasks},
            "result_queue_info": self.publisher("results"),
            "heartbeat_queue_info": self.publisher("heartbeats"),
        }
        body = {
            "command": "cmd_start_endpoint",
            "args": [],
            "kwargs": {
                "name": f"uep.{child['parent']}.{child['id']}",
                "user_opts": child["options"],
                "user_runtime": child["runtime"],
                "amqp_creds": creds,
            },
            "globus_effective_identity": IDENTITY,
            "globus_username": "ada@stand",
            "globus_identity_set": [{"sub": IDENTITY}],
        }
        queue = f"{child['parent']}.commands"
        stamp = int(time.time())
        self.broker.publish(queue, json.dumps(body).encode(), content_type="application/json", timestamp=stamp)

    # -- tasks --------------------------------------------------------------------------------------------

    def submit(self, endpoint_id: str, body: dict[str, Any]) -> dict[str, Any]:
        self.known(endpoint_id)
        if not isinstance(body.get("tasks"), dict):
            raise Refused(422, "SEMANTICALLY_INVALID", "tasks: an object is required")
        for function_id in body["tasks"]:
            if function_id not in self.functions:
                raise Refused(404, "FUNCTION_NOT_FOUND", f"the stand has no function {function_id}")
        options = body.get("user_endpoint_config") or {}
        child = self._child(endpoint_id, options, body.get("user_runtime") or {})
        group = body.get("task_group_id") or str(uuid.uuid4())
        names = [f"{child['id']}.tasks", f"tg.{group}"]
        if not self.queues.issuperset(names):
            self.broker.declare(*names)
        self._running(child)
        made: dict[str, list[str]] = {}
        for function_id, payloads in body["tasks"].items():
            code = self.functions[function_id]["function_code"]
            for payload in payloads:
                task_id = str(uuid.uuid4())
                made.setdefault(function_id, []).append(task_id)
                with self.lock:
                    waits = "waiting-for-nodes" if self.online(endpoint_id) else "waiting-for-ep"
                    self.tasks[task_id] = {"task_id": task_id, "status": waits, "task_group_id": group}
                headers: dict[str, Any] = {"function_uuid": function_id, "task_uuid": task_id}
                if body.get("resource_specification"):
                    headers["resource_specification"] = json.dumps(body["resource_specification"])
                if body.get("result_serializers"):
                    headers["result_serializers"] = body["result_serializers"]
                self.broker.publish(names[0], pack(Task(task_id=task_id, task_buffer=code + payload)), headers=headers)
        return {"tasks": made, "task_group_id": group, "request_id": str(uuid.uuid4()), "endpoint_id": endpoint_id}

    def _child(self, endpoint_id: str, options: dict[str, Any], runtime: dict[str, Any]) -> dict[str, Any]:
        key = hashlib.sha256(json.dumps([endpoint_id, options], sort_keys=True).encode()).hexdigest()
        child_id = str(uuid.uuid5(uuid.NAMESPACE_OID, key))
        fresh = {"id": child_id, "parent": endpoint_id, "options": options, "seen": 0.0, "error": None}
        with self.lock:
            child = self.children.setdefault(child_id, {**fresh, "waiting": False})
            child["runtime"] = runtime
        return child

    def _running(self, child: dict[str, Any]) -> None:
        """Have the user's process started, and wait for it unless its endpoint is offline."""
        parent = self.endpoints[child["parent"]]
        if not self.online(child["parent"]):
            child["waiting"] = True
            return
        up = time.time() - child["seen"] < ONLINE * parent["period"]
        child["error"] = None
        self.start_child(child)
        if up:
            return
        limit = time.monotonic() + START_SECONDS
        with self.lock:
            while not child["seen"] and not child["error"] and time.monotonic() < limit:
                self.lock.wait(1)
        if child["error"]:
            raise Refused(422, "SEMANTICALLY_INVALID", str(child["error"]))
        if not child["seen"]:
            raise Refused(502, "ENDPOINT_START_TIMEOUT", "the user endpoint process did not report in time")

    def task(self, task_id: str) -> dict[str, Any]:
        with self.lock:
            if task_id not in self.tasks:
                raise Refused(404, "TASK_NOT_FOUND", f"the stand has no task {task_id}")
            return dict(self.tasks[task_id])

    # -- routes -------------------------------------------------------------------------------------------

    def answer(self, method: str, path: str, query: str, body: dict[str, Any]) -> dict[str, Any] | list[Any]:
        for pattern, verb, handle in _ROUTES:
            match = re.fullmatch(pattern, path)
            if match and verb == method:
                found: dict[str, Any] | list[Any] = handle(self, body, *match.groups())
                return found
        raise Refused(404, "NOT_FOUND", f"the stand has no route {method} {path}")

    def fault(self, path: str) -> dict[str, Any] | None:
        with self.lock:
            for fault in self.faults:
                if fault["count"] > 0 and re.search(fault["path"], path):
                    fault["count"] -= 1
                    return fault
        return None


def _version(state: State, body: dict[str, Any]) -> dict[str, Any]:
    return {"api": "stand", "min_sdk_version": "2.0.0", "min_ep_version": "2.0.0", "min_endpoint_version": "2.0.0"}


def _function(state: State, body: dict[str, Any]) -> dict[str, Any]:
    made = str(uuid.uuid4())
    if not body.get("serialized", True):  # source text: framed here as the SDK frames a function's source
        code = f"st\n{body['function_name']}:{body['function_code']}"
        body = {**body, "function_code": ComputeSerializer.pack_buffers([code])}
    state.functions[made] = body
    return {"function_uuid": made}


def _status(state: State, body: dict[str, Any], endpoint_id: str) -> dict[str, Any]:
    state.known(endpoint_id)
    return {"status": "online" if state.online(endpoint_id) else "offline", "details": {}}


def _metadata(state: State, body: dict[str, Any], endpoint_id: str) -> dict[str, Any]:
    known = state.known(endpoint_id)
    said = {**(known.get("metadata") or {}), **known}
    return {key: value for key, value in said.items() if key not in ("seen", "period", "metadata")}


def _endpoints(state: State, body: dict[str, Any]) -> list[Any]:
    return [
        {"uuid": key, "name": value.get("endpoint_name"), "owner": IDENTITY} for key, value in state.endpoints.items()
    ]


def _group(state: State, body: dict[str, Any], group: str) -> dict[str, Any]:
    found = [{"id": key} for key, value in state.tasks.items() if value["task_group_id"] == group]
    if not found:
        raise Refused(404, "TASK_GROUP_NOT_FOUND", f"the stand has no task group {group}")
    return {"taskgroup_id": group, "tasks": found, "create_websockets_queue": True}


def _add_fault(state: State, body: dict[str, Any]) -> dict[str, Any]:
    with state.lock:
        state.faults = [f for f in body["faults"] if f.setdefault("count", 1)]
    return {}


def _token(state: State, body: dict[str, Any]) -> dict[str, Any]:
    scope = body.get("scope", "")
    one = {"access_token": "stand", "expires_in": 172800, "token_type": "Bearer"}
    named = [(name, _server(name)) for name in scope.split()] or [("openid", "auth.globus.org")]
    servers: dict[str, list[str]] = {}
    for name, server in named:
        servers.setdefault(server, []).append(name)
    made = [{**one, "scope": " ".join(names), "resource_server": server} for server, names in servers.items()]
    return {**made[0], "other_tokens": made[1:]}


def _server(scope: str) -> str:
    return "auth.globus.org" if "auth.globus.org:" in scope or ":" not in scope else "funcx_service"


def _userinfo(state: State, body: dict[str, Any]) -> dict[str, Any]:
    who = {"sub": IDENTITY, "username": "ada@stand", "name": "Ada", "email": "ada@stand"}
    return {**who, "preferred_username": "ada@stand", "identity_set": [who]}


_ROUTES: list[tuple[str, str, Any]] = [
    (r"/v2/version", "GET", _version),
    (r"/v[23]/functions", "POST", _function),
    (r"/v3/endpoints", "POST", lambda s, b: s.register(b.get("endpoint_uuid") or str(uuid.uuid4()), b)),
    (r"/v3/endpoints/([^/]+)", "PUT", lambda s, b, e: s.register(e, b)),
    (r"/v3/endpoints/([^/]+)/submit", "POST", lambda s, b, e: s.submit(e, b)),
    (r"/v3/endpoints/([^/]+)/allowed_functions", "GET", lambda s, b, e: {"restricted": False, "functions": []}),
    (r"/v2/endpoints/([^/]+)/status", "GET", _status),
    (r"/v2/endpoints/([^/]+)", "GET", _metadata),
    (r"/v2/endpoints", "GET", _endpoints),
    (r"/v2/get_amqp_result_connection_url", "GET", lambda s, b: {"queue_prefix": "tg.", "connection_url": s.url}),
    (r"/v2/tasks/([^/]+)", "GET", lambda s, b, t: s.task(t)),
    (r"/v2/batch_status", "POST", lambda s, b: {"results": {t: s.task(t) for t in b["task_ids"]}}),
    (r"/v2/taskgroup/([^/]+)", "GET", _group),
    (r"/v2/oauth2/token", "POST", _token),
    (r"/v2/oauth2/userinfo", "GET", _userinfo),
    (r"/stand/faults", "POST", _add_fault),
    (
        r"/stand/calls",
        "GET",
        lambda s, b: {"calls": s.calls, "children": [{**c, "runtime": None} for c in s.children.values()]},
    ),
]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    state: State

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_PUT = do_DELETE = do_GET

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        path, _, query = self.path.partition("?")
        path = re.sub(r"^/+", "/", path)
        if not path.startswith("/stand/"):
            self.state.calls.append([time.time(), self.command, path])
        fault = self.state.fault(path)
        if fault is not None:
            time.sleep(fault.get("hang", 0))
            if "body" in fault:
                return self._send(fault.get("status", 200), fault["body"].encode(), fault.get("type", "text/html"))
            if "status" in fault:
                refused = Refused(
                    fault["status"], fault.get("code", "STAND_FAULT"), fault.get("reason", "as the test said")
                )
                return self._send(refused.status, json.dumps(refused.body).encode())
        try:
            if length > LARGEST and not path.startswith("/stand/"):
                raise Refused(413, "PAYLOAD_TOO_LARGE", f"{length} bytes are more than {LARGEST}")
            found = self.state.answer(self.command, path, query, self._body(raw))
            return self._send(200, json.dumps(found, default=str).encode())
        except Refused as refused:
            return self._send(refused.status, json.dumps(refused.body).encode())
        except Exception as error:
            print(f"{self.command} {self.path}: {error!r}", flush=True)
            body = {"code": "INTERNAL_ERROR", "reason": repr(error), "http_status_code": 500}
            return self._send(500, json.dumps(body).encode())

    def _body(self, raw: bytes) -> dict[str, Any]:
        if "form" in self.headers.get("Content-Type", ""):
            from urllib.parse import parse_qsl

            return dict(parse_qsl(raw.decode()))
        found = json.loads(raw) if raw else {}
        if not isinstance(found, dict):
            raise Refused(422, "SEMANTICALLY_INVALID", "an object is required")
        return found

    def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        print(f"{time.time():.3f} {format % args}", flush=True)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main() -> None:
    port, url = sys.argv[1:]
    Handler.state = State(url)
    Handler.state.broker.ready.wait(60)
    Server(("127.0.0.1", int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main()
