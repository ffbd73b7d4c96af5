// link: infernex_indexer_core infernex_engine_core infernex_simulator_core simdjson::simdjson
//
// The KV index on a trace of requests (TRACE=FILE, in Mooncake's form): how fast one writer takes changes while it
// answers lookups itself, or while one or two threads do; the same from the bytes an engine sends; and a plain
// std::unordered_map beside them. "visible" is the time from an engine's bytes to the index, all but the sockets. Every
// measurement runs in a process of its own and applies every event before the
// clock stops. Each figure is the median of the repetitions (BENCH_REPETITIONS, 3 unless set).

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "actors/indexer/kv_index.hpp"
#include "tests/bench/support/plain_index.hpp"
#include "tests/bench/support/raw_events.hpp"
#include "tests/bench/support/report.hpp"
#include "tests/bench/support/trace_workload.hpp"

namespace {

using infernex::bench::operation;
using infernex::bench::percentile;
using infernex::bench::workload;
using infernex::indexer::kv_index;
using clock_type = std::chrono::steady_clock;

[[noreturn]] void fail(const char* why) {
  std::cerr << "bench-index: " << why << std::endl;
  std::_Exit(1);
}

double seconds_since(clock_type::time_point began) {
  return std::chrono::duration<double>(clock_type::now() - began).count();
}

struct figures {
  double block_ops_per_s = 0;
  double lookup_p50_us = 0;
  double lookup_p99_us = 0;
  double lookup_p999_us = 0;
  double bytes_per_membership = 0;
  double peak_bytes_per_membership = 0;
  double memberships = 0;
  double blocks_matched = 0;
  double mirror_bytes_per_membership = 0;
  double visible_p50_us = 0;
  double visible_p99_us = 0;
};

void keep_latencies(figures& into, std::vector<double>& microseconds) {
  into.lookup_p50_us = percentile(microseconds, 0.5);
  into.lookup_p99_us = percentile(microseconds, 0.99);
  into.lookup_p999_us = percentile(microseconds, 0.999);
}

std::vector<std::string> engine_names(std::uint32_t engines) {
  std::vector<std::string> names;
  for (std::uint32_t e = 0; e < engines; ++e) names.push_back("engine-" + std::to_string(e));
  return names;
}

template <class Lookup>
double timed(Lookup lookup) {
  const auto began = clock_type::now();
  lookup();
  return seconds_since(began) * 1e6;
}

constexpr std::uint64_t large = 16ULL << 30;

/// `readers` threads answer the trace's lookups, each request when the writer has come to it; 0: the writer itself.
figures measure_index(const workload& work, unsigned readers) {
  figures out;
  kv_index index({.max_instances = work.engines, .max_bytes = large});
  const auto names = engine_names(work.engines);
  for (const auto& name : names) index.add_instance(name);
  std::atomic<std::size_t> reached{0};
  std::vector<std::vector<double>> microseconds(std::max(1U, readers));
  std::atomic<std::uint64_t> matched{0};
  const auto answer = [&](kv_index::reader& by, const operation& o, std::vector<double>& into) {
    std::uint64_t blocks = 0;
    into.push_back(timed([&] {
      for (const auto& m : by.lookup(work.chain(o))) blocks += m.blocks;
    }));
    return blocks;
  };
  std::uint64_t peak = 0;
  const auto began = clock_type::now();
  std::vector<std::thread> threads;
  for (unsigned r = 0; r < readers; ++r)
    threads.emplace_back([&, r] {
      kv_index::reader reader(index);
      std::uint64_t blocks = 0;
      for (std::size_t i = r; i < work.operations.size(); i += readers) {
        while (reached.load(std::memory_order_relaxed) < i) std::this_thread::yield();
        blocks += answer(reader, work.operations[i], microseconds[r]);
      }
      matched += blocks;
    });
  {
    kv_index::reader own(index);
    std::uint64_t blocks = 0;
    for (std::size_t i = 0; i < work.operations.size(); ++i) {
      const auto& o = work.operations[i];
      if (readers == 0) blocks += answer(own, o, microseconds[0]);
      index.remove(names[o.engine], work.removed(o));
      index.add(names[o.engine], work.stored(o));
      reached.store(i + 1, std::memory_order_relaxed);
      if (i % 256 == 0) peak = std::max(peak, index.bytes());
    }
    matched += blocks;
  }
  for (auto& t : threads) t.join();
  out.block_ops_per_s = static_cast<double>(work.block_operations) / seconds_since(began);
  for (std::size_t r = 1; r < microseconds.size(); ++r)
    microseconds[0].insert(microseconds[0].end(), microseconds[r].begin(), microseconds[r].end());
  keep_latencies(out, microseconds[0]);
  while (index.maintain()) {
  }
  std::uint64_t memberships = 0;
  for (const auto& name : names) memberships += index.keys_of(name);
  out.memberships = static_cast<double>(memberships);
  out.bytes_per_membership = static_cast<double>(index.bytes()) / out.memberships;
  out.peak_bytes_per_membership = static_cast<double>(peak) / out.memberships;
  out.blocks_matched = static_cast<double>(matched) / static_cast<double>(work.operations.size());
  return out;
}

figures measure_baseline(const workload& work) {
  figures out;
  const auto before = mallinfo2();
  infernex::bench::plain_index index;
  std::vector<double> microseconds;
  std::uint64_t matched = 0;
  microseconds.reserve(work.operations.size());
  const auto reserved = microseconds.capacity() * sizeof(double);
  const auto began = clock_type::now();
  for (const auto& o : work.operations) {
    microseconds.push_back(timed([&] {
      for (const auto& m : index.lookup(work.chain(o))) matched += m.blocks;
    }));
    index.remove(o.engine, work.removed(o));
    index.add(o.engine, work.stored(o));
  }
  out.block_ops_per_s = static_cast<double>(work.block_operations) / seconds_since(began);
  const auto after = mallinfo2();
  out.memberships = static_cast<double>(index.memberships());
  out.bytes_per_membership =
      static_cast<double>(after.uordblks + after.hblkhd - before.uordblks - before.hblkhd - reserved) / out.memberships;
  out.peak_bytes_per_membership = out.bytes_per_membership;
  out.blocks_matched = static_cast<double>(matched) / static_cast<double>(work.operations.size());
  keep_latencies(out, microseconds);
  return out;
}

figures measure_raw(const workload& work, const infernex::bench::raw_events& raw) {
  figures out;
  infernex::bench::raw_pipeline pipeline(work.engines, {.max_bytes = large, .per_model = {work.engines, large}});
  const auto names = engine_names(work.engines);
  auto lookups_of = std::make_unique<infernex::indexer::index_set::reader>(pipeline.indexes());
  std::vector<double> lookups;
  std::vector<double> visible;
  std::uint64_t matched = 0;
  const auto began = clock_type::now();
  for (std::size_t i = 0; i < raw.operations; ++i) {
    const auto& o = work.operations[i];
    lookups.push_back(timed([&] {
      if (const auto found =
              lookups_of->lookup(infernex::bench::model, infernex::bench::request_keys(raw.tokens_of(i))))
        for (const auto& m : *found) matched += m.blocks;
    }));
    visible.push_back(timed([&] { pipeline.apply(o.engine, names[o.engine], raw.payload_of(i)); }));
  }
  out.block_ops_per_s = static_cast<double>(raw.block_operations) / seconds_since(began);
  keep_latencies(out, lookups);
  out.visible_p50_us = percentile(visible, 0.5);
  out.visible_p99_us = percentile(visible, 0.99);
  const auto [indexed, mirrored] = pipeline.memberships();
  if (indexed != mirrored || indexed == 0) fail("the index does not hold what the mirrors hold");
  out.memberships = static_cast<double>(indexed);
  out.bytes_per_membership = static_cast<double>(pipeline.index_bytes()) / out.memberships;
  out.peak_bytes_per_membership = out.bytes_per_membership;
  out.mirror_bytes_per_membership = static_cast<double>(pipeline.mirror_bytes()) / out.memberships;
  out.blocks_matched = static_cast<double>(matched) / static_cast<double>(raw.operations);
  return out;
}

/// Runs `measure` in a process of its own, which shares nothing that it changes with any other.
template <class Measure>
figures in_own_process(Measure measure) {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  const auto child = fork();
  if (child == 0) {
    const figures found = measure();
    const auto written = write(ends[1], &found, sizeof found);
    _exit(written == sizeof found ? 0 : 1);
  }
  close(ends[1]);
  figures found;
  const auto got = child < 0 ? -1 : read(ends[0], &found, sizeof found);
  close(ends[0]);
  int status = 1;
  if (child > 0) waitpid(child, &status, 0);
  if (got != sizeof found || status != 0) fail("a measurement did not end well");
  return found;
}

double median(std::vector<double> values) { return percentile(values, 0.5); }

template <class Measure>
figures repeated(Measure measure, double& slowest, double& fastest) {
  const auto* wanted = std::getenv("BENCH_REPETITIONS");
  const auto repetitions = std::max(1, wanted ? std::atoi(wanted) : 3);
  std::vector<figures> all;
  for (int i = 0; i < repetitions; ++i) all.push_back(in_own_process(measure));
  const auto middle = [&all](double figures::*which) {
    std::vector<double> values;
    for (const auto& f : all) values.push_back(f.*which);
    return median(values);
  };
  slowest = fastest = all[0].block_ops_per_s;
  for (const auto& f : all) {
    slowest = std::min(slowest, f.block_ops_per_s);
    fastest = std::max(fastest, f.block_ops_per_s);
  }
  figures out;
  for (const auto which : {&figures::block_ops_per_s, &figures::lookup_p50_us, &figures::lookup_p99_us,
                           &figures::lookup_p999_us, &figures::bytes_per_membership,
                           &figures::peak_bytes_per_membership, &figures::memberships, &figures::blocks_matched,
                           &figures::mirror_bytes_per_membership, &figures::visible_p50_us, &figures::visible_p99_us})
    out.*which = middle(which);
  return out;
}

constexpr std::uint32_t copies = 20;
constexpr std::uint32_t blocks_an_engine = 16'384;

}  // namespace

int main(int argc, char** argv) {
  infernex::bench::report report(
      "index", {"engines", "what", "block_ops_million_s", "slowest", "fastest", "lookup_p50_us", "lookup_p99_us",
                "lookup_p999_us", "bytes_a_membership", "at_peak", "mirror_bytes_a_membership", "visible_p50_us",
                "visible_p99_us", "memberships", "blocks_matched"});
  const auto* file = std::getenv("TRACE");
  const bool given = file && *file;
  const auto trace = given ? infernex::bench::read_trace(file) : infernex::bench::made_up_trace();
  if (trace.empty()) {
    std::cerr << "no requests in " << file << '\n';
    return 1;
  }
  if (!given) std::cout << "no TRACE=FILE given: a made-up trace of the same form\n";
  report.fact("trace", given ? std::string(file).substr(std::string(file).find_last_of('/') + 1) : "made up");

  for (const std::uint32_t engines : {64U, 1'024U}) {
    const auto work = infernex::bench::make_workload(trace, engines, copies, blocks_an_engine);
    std::cout << engines << " engines: " << work.operations.size() << " requests, " << work.block_operations
              << " block operations" << std::endl;
    const auto row = [&](const std::string& what, auto measure) {
      double slowest = 0;
      double fastest = 0;
      const auto f = repeated(measure, slowest, fastest);
      report.row(engines, what, f.block_ops_per_s / 1e6, slowest / 1e6, fastest / 1e6, f.lookup_p50_us, f.lookup_p99_us,
                 f.lookup_p999_us, f.bytes_per_membership, f.peak_bytes_per_membership, f.mirror_bytes_per_membership,
                 f.visible_p50_us, f.visible_p99_us, static_cast<std::uint64_t>(f.memberships), f.blocks_matched);
      std::cout << "  " << what << ": " << f.block_ops_per_s / 1e6 << " M block operations/s" << std::endl;
      return f;
    };
    const auto alone = row("one thread", [&] { return measure_index(work, 0); });
    const auto one = row("writer, 1 reader", [&] { return measure_index(work, 1); });
    row("writer, 2 readers", [&] { return measure_index(work, 2); });
    const auto plain = row("std::unordered_map", [&] { return measure_baseline(work); });
    if (plain.blocks_matched != alone.blocks_matched || plain.memberships != alone.memberships)
      fail("the index and the plain one differ in what they found");
    const infernex::bench::raw_events raw(work);
    row("from raw events", [&] { return measure_raw(work, raw); });
    if (engines != 64) continue;
    report.fact("block_ops_per_s", alone.block_ops_per_s);
    report.fact("lookup_p50_us", one.lookup_p50_us);
    report.fact("lookup_p99_us", one.lookup_p99_us);
    report.fact("bytes_per_membership", alone.bytes_per_membership);
    report.fact("baseline.block_ops_per_s", plain.block_ops_per_s);
    report.fact("baseline.lookup_p50_us", plain.lookup_p50_us);
    report.fact("baseline.lookup_p99_us", plain.lookup_p99_us);
    report.fact("baseline.bytes_per_membership", plain.bytes_per_membership);
    report.fact("times_baseline", alone.block_ops_per_s / plain.block_ops_per_s);
  }
  return report.publish(infernex::bench::report_folder(argc, argv)) ? 0 : 1;
}
