#![doc = include_str!("../README.md")]

mod flat_map;
mod packets;
mod pcap;

pub use crate::{
    flat_map::{PacketItems, PacketsOf},
    packets::{Packet, Packets},
    pcap::{Pcap, PcapOptions},
};

forebay_core::export_plugin! { sources: [Pcap], flat_maps: [PacketsOf] }
