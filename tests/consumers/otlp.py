"""Decodes profiles with OpenTelemetry's generated code. Prints a JSON list of profiles, each with
its type, its unit and the sum of each operator. Fails on fields that the version does not know."""

import json
import sys
from collections import Counter

from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData


def check(message):
    assert len(UnknownFieldSet(message)) == 0, f"unknown fields in {message.DESCRIPTOR.name}"
    for field, value in message.ListFields():
        if field.message_type:
            for part in value if field.is_repeated else [value]:
                check(part)


data = ProfilesData()
with open(sys.argv[1], "rb") as file:
    data.ParseFromString(file.read())
check(data)

dictionary = data.dictionary
strings = dictionary.string_table
assert strings[0] == "" and len(set(strings)) == len(strings)
for name in ("mapping", "location", "function", "link", "attribute", "stack"):
    table = getattr(dictionary, f"{name}_table")
    assert table[0] == type(table[0])(), f"{name}_table[0] must be the zero value"
for location in dictionary.location_table[1:]:
    for line in location.lines:
        function = dictionary.function_table[line.function_index]
        assert strings[function.name_strindex]


def attributes(sample):
    for index in sample.attribute_indices:
        attribute = dictionary.attribute_table[index]
        kind = attribute.value.WhichOneof("value")
        yield strings[attribute.key_strindex], getattr(attribute.value, kind)


profiles = []
for resource in data.resource_profiles:
    for scope in resource.scope_profiles:
        for profile in scope.profiles:
            sums = Counter()
            for sample in profile.samples:
                stack = dictionary.stack_table[sample.stack_index]
                assert all(0 < at < len(dictionary.location_table) for at in stack.location_indices)
                (value,) = sample.values
                sums[dict(attributes(sample))["spark.operator"]] += value
            profiles.append(
                {
                    "type": strings[profile.sample_type.type_strindex],
                    "unit": strings[profile.sample_type.unit_strindex],
                    "operators": sums,
                }
            )
json.dump(profiles, sys.stdout)
