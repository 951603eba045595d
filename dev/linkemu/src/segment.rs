//! Super-packets: what the kernel hands over as one, and the segments a wire would carry.
//!
//! Shape::of   reads the virtio-net header: where the TCP payload begins, bytes per segment
//! header_for  the headers of a run of segments cut out of a super-packet, so that the run can
//!             be written with its payload where it lies

use std::ops::Range;

use sys::tun::VNET_HDR;

const NEEDS_CSUM: u8 = 1;
const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
const GSO_ECN: u8 = 0x80;

const FIN_PSH: u8 = 0x01 | 0x08;
const CWR: u8 = 0x80;

/// The most bytes that IP and TCP headers with every option may take, virtio-net header included.
const HEADERS_MAX: usize = VNET_HDR + 120 + 60;

/// How one frame (virtio-net header and packet) divides into segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of the whole frame.
    pub frame: usize,
    /// Bytes before the payload, the virtio-net header included.
    pub headers: usize,
    /// Payload bytes of each segment but the last.
    pub mss: usize,
    /// Number of segments; 1 for everything but TCP super-packets.
    pub segments: u32,
    /// Offset of the TCP header in the frame; 0 unless this is a super-packet.
    tcp: usize,
}

impl Shape {
    /// Reads a frame's shape. Whatever is not a TCP super-packet is one segment.
    pub fn of(frame: &[u8]) -> Self {
        Self::of_super_packet(frame).unwrap_or(Self {
            frame: frame.len(),
            headers: frame.len(),
            mss: 1,
            segments: 1,
            tcp: 0,
        })
    }

    fn of_super_packet(frame: &[u8]) -> Option<Self> {
        let kind = frame.get(1)? & !GSO_ECN;
        if !matches!(kind, GSO_TCP4 | GSO_TCP6) {
            return None;
        }
        let mss = usize::from(u16::from_le_bytes([*frame.get(4)?, *frame.get(5)?]));
        let tcp = VNET_HDR + usize::from(u16::from_le_bytes([*frame.get(6)?, *frame.get(7)?]));
        let headers = tcp + usize::from(*frame.get(tcp + 12)? >> 4) * 4;
        if mss == 0 || headers >= frame.len() || headers > HEADERS_MAX {
            return None;
        }
        let segments = (frame.len() - headers).div_ceil(mss) as u32;
        Some(Self { frame: frame.len(), headers, mss, segments, tcp })
    }

    /// Bytes that `segments` have on the wire: each carries the IP and TCP headers again.
    pub fn wire_bytes(&self, segments: &Range<u32>) -> u64 {
        let headers = (self.headers - VNET_HDR) as u64 * u64::from(segments.end - segments.start);
        headers + self.payload(segments).len() as u64
    }

    /// Where in the frame the payload of `segments` lies.
    pub fn payload(&self, segments: &Range<u32>) -> Range<usize> {
        let at = |segment: u32| (self.headers + segment as usize * self.mss).min(self.frame);
        at(segments.start)..at(segments.end)
    }

    /// Whether `segments` are all there are.
    pub fn is_whole(&self, segments: &Range<u32>) -> bool {
        *segments == (0..self.segments)
    }
}

/// The headers of one part of a super-packet.
pub struct Headers {
    bytes: [u8; HEADERS_MAX],
    len: usize,
}

impl Headers {
    /// The bytes to write before the payload.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Headers for `segments` of the super-packet `frame`, as the kernel's own segmentation makes
/// them: lengths, IPv4 identification and checksum, sequence number, FIN, PSH and CWR, and the
/// partial TCP checksum (which covers the pseudo-header, and so the length).
pub fn header_for(frame: &[u8], shape: &Shape, segments: &Range<u32>) -> Headers {
    let mut bytes = [0; HEADERS_MAX];
    let headers = &mut bytes[..shape.headers];
    headers.copy_from_slice(&frame[..shape.headers]);
    let cut = Cut {
        shape: *shape,
        payload: shape.payload(segments).len(),
        first: segments.start,
        is_last: segments.end == shape.segments,
    };
    cut.patch_vnet(headers);
    cut.patch_ip(&mut headers[VNET_HDR..shape.tcp]);
    cut.patch_tcp(&mut headers[shape.tcp..]);
    Headers { bytes, len: shape.headers }
}

/// One run of segments being cut out.
struct Cut {
    shape: Shape,
    payload: usize,
    first: u32,
    is_last: bool,
}

impl Cut {
    fn patch_vnet(&self, vnet: &mut [u8]) {
        if self.payload <= self.shape.mss {
            vnet[1] = 0; // no longer a super-packet
            vnet[4..6].fill(0);
        }
        vnet[2..4].copy_from_slice(&((self.shape.headers - VNET_HDR) as u16).to_le_bytes());
    }

    fn patch_ip(&self, ip: &mut [u8]) {
        let packet = self.shape.headers - VNET_HDR + self.payload;
        if ip[0] >> 4 == 6 {
            ip[4..6].copy_from_slice(&((packet - 40) as u16).to_be_bytes());
            return;
        }
        ip[2..4].copy_from_slice(&(packet as u16).to_be_bytes());
        let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(self.first as u16);
        ip[4..6].copy_from_slice(&id.to_be_bytes());
        ip[10..12].fill(0);
        let sum = !fold(sum_words(ip));
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
    }

    fn patch_tcp(&self, tcp: &mut [u8]) {
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]])
            .wrapping_add(self.first * self.shape.mss as u32);
        tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
        if !self.is_last {
            tcp[13] &= !FIN_PSH;
        }
        if self.first > 0 {
            tcp[13] &= !CWR;
        }
        let old = (self.shape.frame - self.shape.tcp) as u16;
        let new = (tcp.len() + self.payload) as u16;
        let partial = u16::from_be_bytes([tcp[16], tcp[17]]);
        let partial = fold(u32::from(partial) + u32::from(!old) + u32::from(new));
        tcp[16..18].copy_from_slice(&partial.to_be_bytes());
    }
}

/// Whether a frame's transport checksum is left for the receiver's device to fill in.
pub fn has_partial_checksum(frame: &[u8]) -> bool {
    frame.first().is_some_and(|flags| flags & NEEDS_CSUM != 0)
}

fn sum_words(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0))).sum()
}

fn fold(mut sum: u32) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A super-packet of `payload` bytes whose TCP checksum field holds the pseudo-header's sum.
    fn super_packet(v6: bool, payload: usize, mss: u16, flags: u8) -> Vec<u8> {
        let ip = if v6 { 40 } else { 20 };
        let mut frame = vec![NEEDS_CSUM, if v6 { GSO_TCP6 } else { GSO_TCP4 }, 0, 0];
        frame.extend(mss.to_le_bytes());
        frame.extend((ip as u16).to_le_bytes());
        frame.extend(16u16.to_le_bytes());
        let tcp_len = 32 + payload;
        if v6 {
            frame.extend([0x60, 0, 0, 0]);
            frame.extend((tcp_len as u16).to_be_bytes());
            frame.extend([6, 64]);
            frame.extend((0u8..32).map(|i| i.wrapping_mul(37)));
        } else {
            frame.extend([0x45, 0]);
            frame.extend(((ip + tcp_len) as u16).to_be_bytes());
            frame.extend([0xff, 0xfe, 0x40, 0, 64, 6, 0, 0, 10, 99, 0, 1, 10, 99, 0, 2]);
        }
        frame.extend([0x12, 0x34, 0, 22, 0xff, 0xff, 0xff, 0x00, 0, 0, 0, 1, 0x80, flags]);
        frame.extend([1, 0, 0, 0, 0, 0]);
        frame.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        let partial = pseudo_header(&frame, tcp_len);
        frame[VNET_HDR + ip + 16..][..2].copy_from_slice(&partial.to_be_bytes());
        frame.extend((0..payload).map(|i| (i * 7) as u8));
        frame
    }

    fn pseudo_header(frame: &[u8], tcp_len: usize) -> u16 {
        let ip = &frame[VNET_HDR..];
        let addresses = if ip[0] >> 4 == 6 { &ip[8..40] } else { &ip[12..20] };
        fold(sum_words(addresses) + 6 + tcp_len as u32)
    }

    /// Cuts `segments` out and joins headers and payload.
    fn cut(frame: &[u8], segments: Range<u32>) -> Vec<u8> {
        let shape = Shape::of(frame);
        let mut part = header_for(frame, &shape, &segments).as_slice().to_vec();
        part.extend(&frame[shape.payload(&segments)]);
        part
    }

    fn assert_consistent(part: &[u8], ip_header: usize) {
        let ip = &part[VNET_HDR..];
        let tcp_len = ip.len() - ip_header;
        if ip_header == 20 {
            assert_eq!(usize::from(u16::from_be_bytes([ip[2], ip[3]])), ip.len());
            assert_eq!(fold(sum_words(&ip[..20])), 0xffff, "IPv4 header checksum");
        } else {
            assert_eq!(usize::from(u16::from_be_bytes([ip[4], ip[5]])), ip.len() - 40);
        }
        let field = u16::from_be_bytes([ip[ip_header + 16], ip[ip_header + 17]]);
        assert_eq!(field % 0xffff, pseudo_header(part, tcp_len) % 0xffff, "partial checksum");
        assert!(has_partial_checksum(part));
    }

    #[test]
    fn a_super_packet_counts_its_segments_and_their_headers() {
        let frame = super_packet(false, 2500, 1000, 0x10);
        let shape = Shape::of(&frame);
        assert_eq!(shape.segments, 3);
        assert_eq!(shape.wire_bytes(&(0..3)), 2500 + 3 * 52);
        assert_eq!(shape.wire_bytes(&(2..3)), 500 + 52);
    }

    #[test]
    fn a_plain_packet_is_one_segment_with_its_own_length() {
        let mut frame = vec![0; VNET_HDR];
        frame.extend([0x45; 84]);
        let shape = Shape::of(&frame);
        assert_eq!(shape.segments, 1);
        assert_eq!(shape.wire_bytes(&(0..1)), 84);
    }

    #[test]
    fn a_truncated_or_absurd_header_is_taken_as_one_segment() {
        let frame = super_packet(false, 2500, 1000, 0x10);
        for len in 0..VNET_HDR + 52 {
            assert_eq!(Shape::of(&frame[..len]).segments, 1, "{len} bytes");
        }
        assert_eq!(Shape::of(&super_packet(false, 2500, 0, 0x10)).segments, 1);
    }

    #[test]
    fn parts_of_a_super_packet_are_consistent_in_both_families() {
        for (v6, ip_header) in [(false, 20), (true, 40)] {
            let frame = super_packet(v6, 10_500, 1000, 0x18);
            for start in 0..11 {
                for end in start + 1..=11 {
                    assert_consistent(&cut(&frame, start..end), ip_header);
                }
            }
        }
    }

    #[test]
    fn parts_carry_the_payload_and_sequence_numbers_of_their_place() {
        let frame = super_packet(false, 2500, 1000, 0x10);
        let part = cut(&frame, 1..3);
        assert_eq!(part[VNET_HDR + 52..], frame[VNET_HDR + 52 + 1000..]);
        let sequence = &part[VNET_HDR + 24..VNET_HDR + 28];
        assert_eq!(sequence, 0xffff_ff00u32.wrapping_add(1000).to_be_bytes());
        assert_eq!(part[VNET_HDR + 4..VNET_HDR + 6], [0xff, 0xff], "identification + 1");
    }

    #[test]
    fn fin_and_psh_stay_with_the_last_segment_and_cwr_with_the_first() {
        let frame = super_packet(false, 3000, 1000, 0x10 | FIN_PSH | CWR);
        let flags = |segments| cut(&frame, segments)[VNET_HDR + 33];
        assert_eq!(flags(0..1), 0x10 | CWR);
        assert_eq!(flags(1..2), 0x10);
        assert_eq!(flags(2..3), 0x10 | FIN_PSH);
    }

    #[test]
    fn a_single_segment_is_no_longer_a_super_packet() {
        let frame = super_packet(false, 2500, 1000, 0x10);
        assert_eq!(cut(&frame, 0..1)[1], 0);
        assert_eq!(cut(&frame, 0..2)[1], GSO_TCP4);
        assert_eq!(Shape::of(&cut(&frame, 0..2)).segments, 2);
    }
}
