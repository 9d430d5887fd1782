use super::*;

pub(super) struct DropTail;
impl Model for DropTail {}

pub(super) struct DropFront;
impl Model for DropFront {
    fn victim(&mut self, _: &[Packet], _: &mut Rng) -> usize {
        0
    }
}

struct RandomDrop;
impl Model for RandomDrop {
    fn victim(&mut self, q: &[Packet], rng: &mut Rng) -> usize {
        rng.below(q.len() + 1)
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn droptail_is_its_model(room in room(), ops in traffic()) {
        compare("droptail", &[], room, &ops, DropTail)?;
    }

    #[test]
    fn drop_front_is_its_model(room in room(), ops in traffic()) {
        compare("drop-front", &[], room, &ops, DropFront)?;
    }

    #[test]
    fn random_drop_is_its_model(room in room(), ops in traffic()) {
        compare("random-drop", &[], room, &ops, RandomDrop)?;
    }
}
