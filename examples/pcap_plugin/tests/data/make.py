"""Writes the captures here: two pings and a TCP segment that the capture cut off, in both byte orders and both units of time."""
import struct


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def ip(protocol, length, payload):
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, length, 1, 0, 64, protocol, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    return bytes.fromhex("020000000002020000000001" "0800") + head + payload


def ping(kind):
    body = struct.pack(">HH", 7, 1) + bytes(range(56))
    sum_of = checksum(struct.pack(">BBH", kind, 0, 0) + body)
    return ip(1, 84, struct.pack(">BBH", kind, 0, sum_of) + body)


segment = ip(6, 1500, struct.pack(">HHIIBBHHH", 443, 50000, 1, 1, 0x50, 0x18, 1024, 0, 0) + b"data..")
packets = [(ping(8), 98), (ping(0), 98), (segment, 1514)]

for name, order, magic, nanos in [
    ("ping", "<", 0xA1B2C3D4, False),
    ("ping-big", ">", 0xA1B2C3D4, False),
    ("ping-nanos", "<", 0xA1B23C4D, True),
    ("ping-big-nanos", ">", 0xA1B23C4D, True),
]:
    with open(f"{name}.pcap", "wb") as file:
        file.write(struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, 1))
        for number, (data, length) in enumerate(packets):
            micros = 123456 + 1000 * number
            fraction = micros * 1000 + 789 if nanos else micros
            file.write(struct.pack(order + "IIII", 1700000000, fraction, len(data), length) + data)
