# SPDX-License-Identifier: Apache-2.0
"""A gRPC client behind the proxy of its environment. Prints a JSON object of what it got.

Usage: grpc_client.py CA_FILE HOST:PORT      (CA_FILE -: without TLS)
"""
import json
import sys
import threading

import grpc


def open_channel(ca_file, target):
    if ca_file == "-":
        return grpc.insecure_channel(target)
    with open(ca_file, "rb") as ca:
        return grpc.secure_channel(target, grpc.ssl_channel_credentials(ca.read()))


def main():
    got = {}
    with open_channel(*sys.argv[1:]) as channel:
        call = channel.unary_unary("/test.Echo/Unary").with_call(b"hello", timeout=120)
        got["unary"] = call[0].decode()
        got["trailing"] = dict(call[1].trailing_metadata()).get("x-trailing")
        got["many"] = [message.decode() for message in channel.unary_stream("/test.Echo/Many")(b"5", timeout=120)]
        got["gathered"] = channel.stream_unary("/test.Echo/Gather")(
            iter([b"a", b"b", b"c"]), timeout=120).decode()
        got["large"] = len(channel.unary_unary("/test.Echo/Unary")(b"x" * 3000000, timeout=120))

        # Each message is sent only when the answer to the one before has arrived: nothing may be held back.
        turn = threading.Semaphore(1)

        def messages():
            for number in range(5):
                turn.acquire()
                yield b"%d" % number
        got["chat"] = []
        for message in channel.stream_stream("/test.Echo/Chat")(messages(), timeout=120):
            got["chat"].append(message.decode())
            turn.release()

        for method in ("Fail", "Denied"):
            try:
                channel.unary_unary("/test.Echo/" + method)(b"", timeout=120)
                got[method] = "OK"
            except grpc.RpcError as error:
                got[method] = [error.code().name, error.details()]

        endless = channel.unary_stream("/test.Echo/Endless")(b"", timeout=120)
        got["endless"] = next(endless).decode()
        endless.cancel()
        try:
            next(endless)
        except grpc.RpcError as error:
            got["cancelled"] = error.code().name
    print(json.dumps(got))


if __name__ == "__main__":
    main()
