//! Kinds of packets: how files of packets call them, and what those need to know who write these files in
//! other programs' formats.

use crate::packet::Payload;

macro_rules! kinds {
    ($($kind:ident: $name:literal, $role:ident, tcp: $tcp:literal;)+) => {
        /// A kind of packet.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum PacketKind {
            $(#[doc = concat!("`", $name, "`.")] $kind,)+
        }

        impl PacketKind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind),+];

            /// The name in files.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)+ }
            }

            /// What it is for.
            pub const fn role(self) -> Role {
                match self { $(Self::$kind => Role::$role,)+ }
            }

            /// Whether it is a segment of TCP; else it is a datagram.
            pub const fn tcp(self) -> bool {
                match self { $(Self::$kind => $tcp,)+ }
            }
        }
    };
}

kinds! {
    Data: "data", Data, tcp: true;
    Ack: "ack", Answer, tcp: true;
    Syn: "syn", Opening, tcp: true;
    SynAck: "syn-ack", Opening, tcp: true;
    Request: "request", Opening, tcp: true;
    Datagram: "datagram", Data, tcp: false;
    Answer: "answer", Answer, tcp: false;
    Feedback: "feedback", Answer, tcp: false;
    Recorded: "recorded", Data, tcp: false;
}

/// What a packet is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It carries what its flow is there to carry, from the source to the sink, whoever began.
    Data,
    /// It says what came of that.
    Answer,
    /// It comes before: of a handshake, or a request.
    Opening,
}

impl Role {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Answer => "answer",
            Self::Opening => "opening",
        }
    }
}

impl Payload {
    /// What kind of packet it is.
    pub(crate) fn kind(&self) -> PacketKind {
        match self {
            Self::Data { .. } | Self::Stamped { .. } => PacketKind::Data,
            Self::Ack { .. } | Self::Part => PacketKind::Ack,
            Self::Syn { .. } => PacketKind::Syn,
            Self::SynAck { .. } => PacketKind::SynAck,
            Self::Request { .. } => PacketKind::Request,
            Self::Datagram { .. } | Self::Paced { .. } => PacketKind::Datagram,
            Self::Answer => PacketKind::Answer,
            Self::Feedback { .. } | Self::Report { .. } => PacketKind::Feedback,
            Self::Recorded { .. } => PacketKind::Recorded,
        }
    }
}
