#include "trireme/plan/schedule/operation_text.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "trireme/error.h"

namespace trireme::schedule {
namespace {

/// Of channels of a kind between two stages that one rank sends over, which one it is: they stand side by side.
int nth_of_sender(const StepProgram& program, std::size_t index) {
  const Channel& channel = program.channels[index];
  int nth = 0;
  for (std::size_t c = index; c-- > 0;) {
    const Channel& before = program.channels[c];
    if (before.kind != channel.kind || before.from_stage != channel.from_stage ||
        before.to_stage != channel.to_stage || before.from_rank != channel.from_rank) {
      break;
    }
    ++nth;
  }
  return nth;
}

/// What is sent or received: `v17 m3 0>1`, `site 4 2>0`. Where a rank sends what a tie shares to several, `site 4 2>0 #1`
/// to the second.
std::string message_text(const StepProgram& program, const Operation& operation) {
  const auto index = static_cast<std::size_t>(operation.channel);
  if (operation.channel < 0 || index >= program.channels.size()) {
    return "item " + std::to_string(operation.item) + " on no channel (" +
           std::to_string(operation.channel) + ")";
  }
  const Channel& channel = program.channels[index];
  const std::string item = std::string(kItemPrefixes[static_cast<std::size_t>(channel.kind)]) +
                           std::to_string(operation.item);
  const std::string microbatch =
      has_microbatch(channel.kind) ? " m" + std::to_string(operation.microbatch) : "";
  const int nth = has_microbatch(channel.kind) || operation.kind != OperationKind::kSend
                      ? 0
                      : nth_of_sender(program, index);
  return item + microbatch + " " + std::to_string(channel.from_stage) + ">" +
         std::to_string(channel.to_stage) + (nth == 0 ? "" : " #" + std::to_string(nth));
}

/// Takes known texts and numbers off the front of a text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool is_done() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  bool take(std::string_view literal) {
    if (!rest_.starts_with(literal)) return false;
    rest_.remove_prefix(literal.size());
    return true;
  }

  bool take(int& number) {
    const auto [end, status] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (status != std::errc{} || number < 0) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }

 private:
  std::string_view rest_;
};

std::optional<OperationKind> take_kind(Scanner& scanner) {
  for (const OperationRow& operation : kOperations) {
    if (scanner.take(operation.word)) return operation.kind;
  }
  return std::nullopt;
}

bool take_message(Scanner& scanner, const ProgramIndex& index, int rank, Operation& operation) {
  if (!scanner.take(" ")) return false;
  std::size_t kind = 0;
  while (kind < kItemPrefixes.size() && !scanner.take(kItemPrefixes[kind])) ++kind;
  if (kind == kItemPrefixes.size() || !scanner.take(operation.item)) return false;
  const auto channel = static_cast<ChannelKind>(kind);
  if (has_microbatch(channel) && !(scanner.take(" m") && scanner.take(operation.microbatch))) {
    return false;
  }
  int from = 0, to = 0;
  if (!(scanner.take(" ") && scanner.take(from) && scanner.take(">") && scanner.take(to))) {
    return false;
  }
  ProgramIndex::Place place{channel, from, to, rank, 0};
  const bool sends = operation.kind == OperationKind::kSend;
  if (has_microbatch(channel)) {  // Of one of the rank's replicas.
    place.nth = operation.microbatch / std::max(index.program().num_microbatches, 1);
  } else if (sends && scanner.take(" #") && !scanner.take(place.nth)) {
    return false;
  }
  operation.channel = sends ? index.send_channel(place) : index.recv_channel(place);
  return operation.channel >= 0;
}

/// What stands after the operation's word.
bool take_rest(Scanner& scanner, const ProgramIndex& index, int rank, Operation& operation) {
  switch (row_of(operation.kind).operand) {
    case OperandKind::kMessage:
      return take_message(scanner, index, rank, operation);
    case OperandKind::kAction:
      if (!scanner.take(" ")) return false;
      operation.action = parse_action(scanner.rest());
      return scanner.take(scanner.rest());
    case OperandKind::kBucket:
      return scanner.take(" bucket ") && scanner.take(operation.item);
    case OperandKind::kNothing:
      return true;
  }
  return true;
}

int find(const auto& map, const auto& key) {
  const auto found = map.find(key);
  return found == map.end() ? -1 : found->second;
}

}  // namespace

ProgramIndex::ProgramIndex(const StepProgram& program) : program_(program) {
  std::map<Place, int> num_sends, num_recvs;
  for (std::size_t c = 0; c < program.channels.size(); ++c) {
    const auto& [kind, from_stage, to_stage, from_rank, to_rank, limit] = program.channels[c];
    Place send{kind, from_stage, to_stage, from_rank, 0};
    Place recv{kind, from_stage, to_stage, to_rank, 0};
    send.nth = num_sends[send]++;
    recv.nth = num_recvs[recv]++;
    sends_.try_emplace(send, static_cast<int>(c));
    recvs_.try_emplace(recv, static_cast<int>(c));
  }
  for (std::size_t g = 0; g < program.groups.size(); ++g) {
    const RankGroup& group = program.groups[g];
    for (const int rank : group.ranks) {
      groups_.try_emplace({group.kind, rank}, static_cast<int>(g));
    }
  }
}

int ProgramIndex::send_channel(const Place& place) const { return find(sends_, place); }

int ProgramIndex::recv_channel(const Place& place) const { return find(recvs_, place); }

int ProgramIndex::group(GroupKind kind, int rank) const {
  return find(groups_, std::pair(kind, rank));
}

std::string to_text(const StepProgram& program, const Operation& operation) {
  const std::string word(row_of(operation.kind).word);
  switch (row_of(operation.kind).operand) {
    case OperandKind::kMessage:
      return word + " " + message_text(program, operation);
    case OperandKind::kAction:
      return word + " " + to_text(operation.action);
    case OperandKind::kBucket:
      return word + " bucket " + std::to_string(operation.item);
    case OperandKind::kNothing:
      return word;
  }
  return word;
}

Operation parse_operation(const ProgramIndex& index, int rank, std::string_view text) {
  const auto fail = [&](const std::string& problem) {
    throw Error(ErrorKind::kInvalidArgument, "'" + std::string(text.substr(0, 80)) + "' is not " +
                                                 "an operation of rank " + std::to_string(rank) +
                                                 ": " + problem);
  };
  Scanner scanner(text);
  Operation operation;
  const std::optional<OperationKind> kind = take_kind(scanner);
  if (!kind) fail("unknown word");
  operation.kind = *kind;
  if (!take_rest(scanner, index, rank, operation) || !scanner.is_done()) {
    fail("it is not of a form like 'recv v17 m3 0>1', or the rank has no such channel");
  }
  if (const auto group = row_of(operation.kind).group) {
    operation.group = index.group(*group, rank);
    if (operation.group < 0) fail("the rank is in no such group");
  }
  // Each operation has one text: no leading zeros.
  if (to_text(index.program(), operation) != text) fail("a number is not written plainly");
  return operation;
}

}  // namespace trireme::schedule
