#pragma once

#include <limits>
#include <vector>

namespace trireme::simulate {

/// Transfers over links that several of them pass: network cards, PCIe switches, uplinks of racks.
///
/// All that are under way progress at once, each as fast as it would alone or slower: what a link has room for is
/// divided equally among the transfers that it holds back (max-min fairness), as flows of a network do. Two transfers
/// of 3 and 1 bytes over a link of 1 byte per microsecond:
///
///     time 0   both begin, half a byte per microsecond each
///     time 2   the smaller is done; the larger has 2 bytes left and the link to itself
///     time 4   the larger is done
///
/// Transfers of one queue (a channel, a group) follow each other. Same calls, same times: nothing is random.
///
/// Cost   an event: links that are passed x transfers under way.
class SharedLinks {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  /// What a transfer takes of a link.
  struct Load {
    int link = 0;
    double bytes = 0;
  };
  struct Transfer {
    double alone_us = 0;  ///< That it takes where nothing holds it back.
    std::vector<Load> loads;
  };

  /// bytes_per_us   by link, above 0.
  SharedLinks(std::vector<double> bytes_per_us, int num_queues);

  /// Behind those of its queue. now   not before times that were given earlier.
  void add(int queue, Transfer transfer, double now);

  /// When the next one will be done, if none is added before.
  double next_us() const { return next_us_; }

  /// Queues whose foremost transfers are done at `now`, ascending; those behind them begin.
  std::vector<int> take_done(double now);

 private:
  struct Flow {
    int queue = 0;
    Transfer transfer;
    double left = 1;        ///< Part of it.
    double rate = 0;        ///< Parts per microsecond.
    double most_bytes = 0;  ///< On the link that it loads most.
    double most_level() const { return most_bytes / transfer.alone_us; }
    double done_us(double since_us) const { return since_us + left / rate; }
  };
  struct Queue {
    std::vector<Transfer> waiting;  ///< From `next` on.
    std::size_t next = 0;
    bool is_busy = false;
  };

  void begin_next(int queue);
  void progress(double now);
  void share();
  double next_level(const std::vector<double>& free, const std::vector<double>& asked,
                    const std::vector<bool>& is_fixed) const;
  bool is_held_back(const Flow& flow, double level, const std::vector<double>& free,
                    const std::vector<double>& asked) const;

  std::vector<double> bytes_per_us_;
  std::vector<Queue> queues_;
  std::vector<Flow> flows_;  ///< Under way, by queue ascending.
  double since_us_ = 0;      ///< `left` is of then.
  double next_us_ = kNever;
};

}  // namespace trireme::simulate
