//! TUN devices with a virtio-net header before each packet, and their configuration.
//!
//! A device is made in the network namespace of the thread that opens it, and the ioctls of
//! this file act on the namespace of the thread that calls them.

use std::ffi::c_int;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Bytes of `struct virtio_net_hdr` in front of each packet, read or written.
pub const VNET_HDR: usize = 10;

/// A TUN device; it exists as long as this does. Reads and writes do not block.
#[derive(Debug)]
pub struct Tun {
    name: String,
    file: File,
}

impl Tun {
    /// Makes device `name`. With `segments`, the kernel hands over and takes TCP packets of up
    /// to 64 KiB, not yet cut into segments nor checksummed; without, packets as on a wire.
    pub fn open(name: &str, segments: bool) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")?;
        let mut request = ifreq(name)?;
        request.ifr_ifru.ifru_flags =
            (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
        ioctl_ptr(file.as_fd(), libc::TUNSETIFF, &mut request)?;
        ioctl_ptr(file.as_fd(), libc::TUNSETVNETHDRSZ, &mut (VNET_HDR as c_int))?;
        let offload = match segments {
            true => libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN,
            false => 0,
        };
        ioctl_value(file.as_fd(), libc::TUNSETOFFLOAD, offload.into())?;
        Ok(Self { name: name.to_owned(), file })
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets the MTU and how many packets the kernel may hold for the reader.
    pub fn set_sizes(&self, mtu: u16, queue_packets: u16) -> io::Result<()> {
        let mut request = ifreq(&self.name)?;
        request.ifr_ifru.ifru_mtu = mtu.into();
        configure(libc::SIOCSIFMTU, &mut request)?;
        request.ifr_ifru.ifru_mtu = queue_packets.into();
        configure(libc::SIOCSIFTXQLEN, &mut request)
    }

    /// Gives the device an address and a route to the one at the other end.
    pub fn set_ipv4(&self, local: Ipv4Addr, remote: Ipv4Addr) -> io::Result<()> {
        let mut request = ifreq(&self.name)?;
        request.ifr_ifru.ifru_addr = sockaddr_v4(local);
        configure(libc::SIOCSIFADDR, &mut request)?;
        request.ifr_ifru.ifru_dstaddr = sockaddr_v4(remote);
        configure(libc::SIOCSIFDSTADDR, &mut request)
    }

    /// Adds an IPv6 address with its prefix.
    pub fn add_ipv6(&self, local: Ipv6Addr, prefix: u8) -> io::Result<()> {
        let mut request = ifreq(&self.name)?;
        configure(libc::SIOCGIFINDEX, &mut request)?;
        // SAFETY: SIOCGIFINDEX has just filled in this member, and any integer is valid in it.
        let index = unsafe { request.ifr_ifru.ifru_ifindex };
        let mut address = In6Ifreq {
            addr: libc::in6_addr { s6_addr: local.octets() },
            prefix: prefix.into(),
            index,
        };
        let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?;
        ioctl_ptr(socket.as_fd(), libc::SIOCSIFADDR, &mut address)
    }

    /// Brings the device up.
    pub fn set_up(&self) -> io::Result<()> {
        set_up(&self.name)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Brings any interface up, such as `lo` in a new namespace.
pub fn set_up(interface: &str) -> io::Result<()> {
    let mut request = ifreq(interface)?;
    configure(libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: SIOCGIFFLAGS has just filled in this member, and any integer is valid in it.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
    configure(libc::SIOCSIFFLAGS, &mut request)
}

/// `struct in6_ifreq` of linux/ipv6.h.
#[repr(C)]
struct In6Ifreq {
    addr: libc::in6_addr,
    prefix: u32,
    index: c_int,
}

fn ifreq(name: &str) -> io::Result<libc::ifreq> {
    if name.is_empty() || name.len() >= libc::IFNAMSIZ {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "interface name"));
    }
    // SAFETY: ifreq is integers and a union of such (and one pointer, which may be null).
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

fn sockaddr_v4(address: Ipv4Addr) -> libc::sockaddr {
    let [a, b, c, d] = address.octets().map(|octet| octet as libc::c_char);
    // sockaddr_in laid over sockaddr: two bytes of port, then the address.
    let sa_data = [0, 0, a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0];
    libc::sockaddr { sa_family: libc::AF_INET as libc::sa_family_t, sa_data }
}

fn configure(request: libc::c_ulong, argument: &mut libc::ifreq) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    ioctl_ptr(socket.as_fd(), request, argument)
}

/// For requests whose argument is a pointer to a `T`; private, as the caller must match them.
fn ioctl_ptr<T>(fd: BorrowedFd<'_>, request: libc::c_ulong, argument: &mut T) -> io::Result<()> {
    // SAFETY: every caller in this file passes the structure its request reads and writes, and
    // the borrow keeps it alive and unaliased during the call.
    let rc = unsafe { libc::ioctl(fd.as_raw_fd(), request, std::ptr::from_mut(argument)) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// For requests whose argument is a number.
fn ioctl_value(fd: BorrowedFd<'_>, request: libc::c_ulong, argument: u64) -> io::Result<()> {
    // SAFETY: the kernel takes the argument of these requests by value.
    let rc = unsafe { libc::ioctl(fd.as_raw_fd(), request, argument) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
