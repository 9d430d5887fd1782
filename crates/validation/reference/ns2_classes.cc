// Classes for ns-2.35 that the BLUE paper's experiments need and ns-2 does not have. ns2_classes.sh builds them.
//
// Queue/Blue   BLUE as in the paper's Fig. 3: freeze_ (s), increment_, decrement_, and long_, its L in packets (0: none).
//              It marks ECN-capable packets and drops others. p_ and marks_ can be read, lost_ (packets that found
//              the buffer full) as well.
// Queue/Bins   queues of ns-2's own that take turns, packet by packet: `$bins bin QUEUE` adds one,
//              `$bins flow FID N` puts a flow into the Nth. Without a buffer of its own.
//
// Agent/TCP/Sack1/NoEcnTimeout and Queue/RED/Short are ns-2's own files with one line changed, in ns2_classes.sh.

#include "flags.h"
#include "queue.h"
#include "random.h"
#include <map>
#include <vector>

class BlueQueue : public Queue {
public:
	BlueQueue() : p_(0), last_(-1e9), long_(0), marks_(0), lost_(0) {
		pq_ = &packets_;
		bind("freeze_", &freeze_);
		bind("increment_", &up_);
		bind("decrement_", &down_);
		bind("p_", &p_);
		bind("long_", &long_);
		bind("marks_", &marks_);
		bind("lost_", &lost_);
	}
	void enque(Packet *p) {
		if (packets_.length() >= qlim_) {
			move(up_);
			++lost_;
			drop(p);
			return;
		}
		if (long_ > 0 && packets_.length() > long_)
			move(up_);
		if (Random::uniform() < p_) {
			hdr_flags *flags = hdr_flags::access(p);
			if (!flags->ect()) {
				drop(p);
				return;
			}
			flags->ce() = 1;
			++marks_;
		}
		packets_.enque(p);
	}
	Packet *deque() {
		Packet *p = packets_.deque();
		if (p == 0)
			move(-down_);
		return p;
	}
private:
	void move(double by) {
		double now = Scheduler::instance().clock();
		if (now - last_ <= freeze_)
			return;
		last_ = now;
		p_ += by;
		if (p_ > 1) p_ = 1;
		if (p_ < 0) p_ = 0;
	}
	PacketQueue packets_;
	double p_, last_, freeze_, up_, down_;
	int long_, marks_, lost_;
};

class Bins : public Queue {
public:
	Bins() : turn_(0) { pq_ = &none_; }
	int command(int argc, const char *const *argv) {
		if (argc == 3 && strcmp(argv[1], "bin") == 0) {
			Bin bin = { (Queue *) TclObject::lookup(argv[2]), false };
			bins_.push_back(bin);
			return TCL_OK;
		}
		if (argc == 4 && strcmp(argv[1], "flow") == 0) {
			of_flow_[atoi(argv[2])] = atoi(argv[3]);
			return TCL_OK;
		}
		return Queue::command(argc, argv);
	}
	void enque(Packet *p) {
		Bin &bin = bins_[of_flow_[hdr_ip::access(p)->flowid()]];
		bin.queue->enque(p);
		bin.busy = true;
	}
	// A turn that finds a queue empty tells it that it is idle.
	Packet *deque() {
		for (size_t n = bins_.size(); n > 0; --n) {
			turn_ = (turn_ + 1) % bins_.size();
			Bin &bin = bins_[turn_];
			if (!bin.busy)
				continue;
			Packet *p = bin.queue->deque();
			if (p != 0)
				return p;
			bin.busy = false;
		}
		return 0;
	}
private:
	struct Bin { Queue *queue; bool busy; };
	std::vector<Bin> bins_;
	std::map<int, int> of_flow_;
	PacketQueue none_;
	size_t turn_;
};

static class BlueClass : public TclClass {
public:
	using TclClass::bind;
	BlueClass() : TclClass("Queue/Blue") {}
	TclObject *create(int, const char *const *) { return new BlueQueue; }
} class_blue;

static class BinsClass : public TclClass {
public:
	using TclClass::bind;
	BinsClass() : TclClass("Queue/Bins") {}
	TclObject *create(int, const char *const *) { return new Bins; }
} class_bins;

extern "C" int Ns2_classes_Init(Tcl_Interp *) {
	class_no_timeout.bind();
	class_short_red.bind();
	class_blue.bind();
	class_bins.bind();
	return TCL_OK;
}
