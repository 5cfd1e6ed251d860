"""The messages of Envoy's `ext_proc` (envoy/service/ext_proc/v3) that a processor needs.

They are declared here by their numbers: Envoy's own files of messages are a package of thousands,
and a field that is not declared is skipped by protobuf, as it should be.
"""

from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE = "envoy.service.ext_proc.v3.ExternalProcessor"
OVERWRITE = 2  # of HeaderAppendAction: the value takes the place of what is there
_PACKAGE = "evenhand.envoy"
_SCALARS = {"bytes": 12, "string": 9, "bool": 8, "enum": 5}  # an enum is read as its number
# A field is `name: number kind`; `*` before the kind says that it is repeated. Alternatives, of
# which one is set, need no `oneof`: they look the same on the wire.
_MESSAGES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "HeaderValue": {"key": (1, "string"), "value": (2, "string"), "raw_value": (3, "bytes")},
    "HeaderMap": {"headers": (1, "*HeaderValue")},
    "HeaderValueOption": {"header": (1, "HeaderValue"), "append_action": (3, "enum")},
    "HeaderMutation": {
        "set_headers": (1, "*HeaderValueOption"),
        "remove_headers": (2, "*string"),
    },
    "HttpHeaders": {"headers": (1, "HeaderMap"), "end_of_stream": (3, "bool")},
    "HttpBody": {"body": (1, "bytes"), "end_of_stream": (2, "bool")},
    "HttpTrailers": {"trailers": (1, "HeaderMap")},
    "HttpStatus": {"code": (1, "enum")},
    "ImmediateResponse": {
        "status": (1, "HttpStatus"),
        "headers": (2, "HeaderMutation"),
        "body": (3, "bytes"),
        "details": (5, "string"),
    },
    "StreamedBodyResponse": {"body": (1, "bytes"), "end_of_stream": (2, "bool")},
    "BodyMutation": {"body": (1, "bytes"), "streamed_response": (3, "StreamedBodyResponse")},
    "CommonResponse": {
        "header_mutation": (2, "HeaderMutation"),
        "body_mutation": (3, "BodyMutation"),
    },
    "HeadersResponse": {"response": (1, "CommonResponse")},
    "BodyResponse": {"response": (1, "CommonResponse")},
    "TrailersResponse": {"header_mutation": (1, "HeaderMutation")},
    "ProcessingRequest": {
        "request_headers": (2, "HttpHeaders"),
        "response_headers": (3, "HttpHeaders"),
        "request_body": (4, "HttpBody"),
        "response_body": (5, "HttpBody"),
        "request_trailers": (6, "HttpTrailers"),
        "response_trailers": (7, "HttpTrailers"),
    },
    "ProcessingResponse": {
        "request_headers": (1, "HeadersResponse"),
        "response_headers": (2, "HeadersResponse"),
        "request_body": (3, "BodyResponse"),
        "response_body": (4, "BodyResponse"),
        "request_trailers": (5, "TrailersResponse"),
        "response_trailers": (6, "TrailersResponse"),
        "immediate_response": (7, "ImmediateResponse"),
    },
}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="evenhand/envoy.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field_name, (number, kind) in fields.items():
            field = message.field.add(name=field_name, number=number)
            field.label = 3 if kind.startswith("*") else 1
            plain = kind.removeprefix("*")
            if plain in _SCALARS:
                field.type = _SCALARS[plain]
            else:
                field.type, field.type_name = 11, f".{_PACKAGE}.{plain}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


_CLASSES = _classes()
ProcessingRequest = _CLASSES["ProcessingRequest"]
ProcessingResponse = _CLASSES["ProcessingResponse"]
