/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A network interface "line" that takes its time for each byte, as the simulator's transmitter does: the next
 * packet leaves the queue when the one before has left the line, to the nanosecond. What left it is gone.
 * What is sent to the interface "in" comes to the line as a router's packets do, which no socket owns.
 * The interface "lines" has four transmit queues; a packet's mark is the number of its queue. It takes no time.
 * Included before a file of net/sched that every kernel has.
 */
#include <linux/etherdevice.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/version.h>

#define LINE_LATE 1000 /* ns that a timer's softirq may take */
#define LINE_EARLY 16 /* ns by which a packet leaves before one that comes at the same time */

static u64 line_free; /* ns */
static struct hrtimer line_timer;
static unsigned int line_byte = 512; /* ns */
module_param_named(line_byte, line_byte, uint, 0600);

static enum hrtimer_restart line_idle(struct hrtimer *timer)
{
	struct net_device *dev = dev_get_by_name(&init_net, "line");

	netif_wake_queue(dev);
	dev_put(dev);
	return HRTIMER_NORESTART;
}

static netdev_tx_t line_xmit(struct sk_buff *skb, struct net_device *dev)
{
	u64 now = ktime_get_ns();

	if (line_byte) {
		netif_stop_queue(dev);
		line_free = now - line_free < LINE_LATE ? line_free : now - LINE_EARLY;
		line_free += (u64)skb->len * line_byte;
		hrtimer_start(&line_timer, ns_to_ktime(line_free), HRTIMER_MODE_ABS);
	}
	consume_skb(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops line_ops = { .ndo_start_xmit = line_xmit };

static void line_setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &line_ops;
	dev->flags |= IFF_NOARP;
	eth_hw_addr_random(dev);
}

static netdev_tx_t lines_xmit(struct sk_buff *skb, struct net_device *dev)
{
	consume_skb(skb);
	return NETDEV_TX_OK;
}

static u16 lines_queue(struct net_device *dev, struct sk_buff *skb, struct net_device *sb_dev)
{
	return skb->mark % dev->real_num_tx_queues;
}

static const struct net_device_ops lines_ops = {
	.ndo_start_xmit = lines_xmit,
	.ndo_select_queue = lines_queue,
};

static void lines_setup(struct net_device *dev)
{
	line_setup(dev);
	dev->netdev_ops = &lines_ops;
}

static netdev_tx_t in_xmit(struct sk_buff *skb, struct net_device *dev)
{
	skb_orphan(skb);
	skb->dev = dev_get_by_name(&init_net, "line");
	dev_put(skb->dev); /* it stays */
	dev_queue_xmit(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops in_ops = { .ndo_start_xmit = in_xmit };

static void in_setup(struct net_device *dev)
{
	line_setup(dev);
	dev->netdev_ops = &in_ops;
	dev->priv_flags |= IFF_NO_QUEUE;
	dev->features |= NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_GSO_SOFTWARE;
}

static int line_made(const char *name, void (*setup)(struct net_device *), unsigned int queues)
{
	struct net_device *dev = alloc_netdev_mqs(0, name, NET_NAME_UNKNOWN, setup, queues, 1);

	return dev ? register_netdev(dev) : -ENOMEM;
}

static int __init line_init(void)
{

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
	hrtimer_init(&line_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	line_timer.function = line_idle;
#else
	hrtimer_setup(&line_timer, line_idle, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
#endif
	return line_made("line", line_setup, 1) ?: line_made("lines", lines_setup, 4) ?: line_made("in", in_setup, 1);
}
late_initcall(line_init);
