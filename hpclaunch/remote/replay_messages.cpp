// Replays the messages between nodes in SimGrid: one actor per node does, round by round, what its ranks do.
//
// Compiled on this machine with Debian's libsimgrid-dev (3.32): g++ -O2 -std=c++17 replay_messages.cpp -lsimgrid
// Standard input: one line for the network, one for times, then the nodes' programs of
// hpclaunch.scaling.allreduce_messages.
//   fat-tree LEAVES PORTS UPLINKS | dragonfly GROUPS ROUTERS NODES GROUP_LINK_GB_S | torus X Y Z | loop SWITCHES NODES WIDTH
//   NODES LINK_GB_S LINK_LATENCY_S START_UP_S INSIDE_LATENCY_S INSIDE_GB_S RANKS_PER_NODE
//   node NUMBER RUNS
//   TIMES INSIDE_BYTES SENDS (FROM TO BYTES)... RECEIVES (FROM TO)...
// Standard output: simulated seconds.
//
// A round: the receives are posted, after the start-up the sends; messages within the node take the closed form
// at the same time; the round ends with the last of all. Model CM02: bytes share links fairly (max-min), nothing else.
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace sg = simgrid::s4u;

struct Send {
  long from, to; // nodes
  sg::Mailbox* box;
  uint64_t bytes;
};

struct Run {
  long times;
  double inside_bytes;
  std::vector<Send> sends;
  std::vector<sg::Mailbox*> receives;
};

struct Times {
  double start_up, inside_latency, inside_bytes_per_s;
};

[[noreturn]] static void refuse(const std::string& what)
{
  std::cerr << "replay_messages: " << what << std::endl;
  std::exit(2);
}

template <typename T> static T next(const char* what)
{
  T value;
  if (not(std::cin >> value))
    refuse(std::string("expected ") + what);
  return value;
}

static sg::Mailbox* box(long from, long to)
{
  return sg::Mailbox::by_name(std::to_string(from) + ">" + std::to_string(to));
}

static void work(const std::vector<Run>* program, Times times)
{
  static char byte = 0;
  for (const auto& run : *program)
    for (long turn = 0; turn < run.times; turn++) {
      std::vector<sg::CommPtr> open;
      std::vector<char*> arrived(run.receives.size());
      for (size_t i = 0; i < run.receives.size(); i++)
        open.push_back(run.receives[i]->get_async<char>(&arrived[i]));
      const double start_up = run.sends.empty() ? 0 : times.start_up;
      if (start_up > 0)
        sg::this_actor::sleep_for(start_up);
      for (const auto& send : run.sends)
        open.push_back(send.box->put_async(&byte, send.bytes));
      // Other ranks of the node, which began with the round.
      const double inside = run.inside_bytes < 0 ? 0 : times.inside_latency + run.inside_bytes / times.inside_bytes_per_s;
      if (inside > start_up)
        sg::this_actor::sleep_for(inside - start_up);
      for (auto& comm : open)
        comm->wait();
    }
}

static std::vector<std::vector<Run>> read_programs(long nodes, long per_node)
{
  std::vector<std::vector<Run>> programs(nodes);
  std::string word;
  while (std::cin >> word) {
    if (word != "node")
      refuse("expected node, found " + word);
    long node = next<long>("a node");
    if (node < 0 || node >= nodes)
      refuse("no such node: " + std::to_string(node));
    auto& program = programs[node];
    program.resize(next<size_t>("the number of runs"));
    for (auto& run : program) {
      run.times        = next<long>("repetitions");
      run.inside_bytes = next<double>("bytes");
      run.sends.resize(next<size_t>("sends"));
      for (auto& send : run.sends) {
        long from  = next<long>("a rank"), to = next<long>("a rank");
        send.from  = node;
        send.to    = to / per_node;
        send.box   = box(from, to);
        send.bytes = next<uint64_t>("bytes");
      }
      run.receives.resize(next<size_t>("receives"));
      for (auto& receive : run.receives) {
        long from = next<long>("a rank");
        receive   = box(from, next<long>("a rank"));
      }
    }
  }
  return programs;
}

// A distributed loop network: switches in a ring, with links to those 1, 2, 4, ... away on both sides. A route takes the
// longest such step that does not pass its end, so between switches a power of two apart it is one step.
static void build_loop(const std::vector<double>& shape, double bytes_per_s, double latency,
                       const std::vector<std::vector<Run>>& programs)
{
  const auto switches = (long)shape.at(0), per = (long)shape.at(1);
  auto* zone          = sg::create_full_zone("network");
  const auto link     = [&](const std::string& name, double speed) {
    return zone->create_link(name, speed)->set_latency(latency)->seal();
  };
  std::vector<sg::Host*> hosts;
  std::vector<const sg::Link*> up, down;
  for (long id = 0; id < switches * per; id++) {
    hosts.push_back(zone->create_host(std::to_string(id), 1e9)->seal());
    up.push_back(link("up" + std::to_string(id), bytes_per_s));
    down.push_back(link("down" + std::to_string(id), bytes_per_s));
  }
  std::map<std::pair<long, long>, const sg::Link*> between;
  for (long from = 0; from < switches; from++)
    for (long step = 1; step < switches; step *= 2)
      for (long to : {(from + step) % switches, (from - step + switches) % switches})
        if (not between.count({from, to}))
          between[{from, to}] = link(std::to_string(from) + "-" + std::to_string(to), shape.at(2) * bytes_per_s);
  std::set<std::pair<long, long>> pairs;
  for (const auto& program : programs)
    for (const auto& run : program)
      for (const auto& send : run.sends)
        pairs.insert({send.from, send.to});
  for (auto [from, to] : pairs) {
    std::vector<sg::LinkInRoute> route{sg::LinkInRoute(up[from])};
    for (long at = from / per, end = to / per; at != end;) {
      const long ahead = (end - at + switches) % switches, left = std::min(ahead, switches - ahead);
      long step        = 1;
      while (2 * step <= left)
        step *= 2;
      const long next = (at + (ahead == left ? step : switches - step)) % switches;
      route.emplace_back(between.at({at, next}));
      at = next;
    }
    route.emplace_back(down[to]);
    zone->add_route(hosts[from]->get_netpoint(), hosts[to]->get_netpoint(), nullptr, nullptr, route, false);
  }
  zone->seal();
}

// Makes the hosts 0, 1, ... and their links.
static void build(const std::string& kind, const std::vector<double>& shape, double bytes_per_s, double latency)
{
  const auto whole  = [&shape](size_t index) { return (unsigned int)shape.at(index); };
  const auto policy = sg::Link::SharingPolicy::SPLITDUPLEX;
  sg::ClusterCallbacks hosts([](sg::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
    const sg::Host* host = zone->create_host(std::to_string(id), 1e9)->seal();
    return std::make_pair(host->get_netpoint(), (simgrid::kernel::routing::NetPoint*)nullptr);
  });
  sg::NetZone* zone;
  if (kind == "fat-tree") {
    sg::FatTreeParams tree(2, {whole(1), whole(0)}, {1, whole(2)}, {1, 1});
    zone = sg::create_fatTree_zone("network", nullptr, tree, hosts, bytes_per_s, latency, policy);
  } else if (kind == "dragonfly") {
    sg::DragonflyParams groups({whole(0), 1}, {1, 1}, {whole(1), whole(2)}, whole(2));
    zone = sg::create_dragonfly_zone("network", nullptr, groups, hosts, bytes_per_s, latency, policy);
  } else if (kind == "torus") {
    zone = sg::create_torus_zone("network", nullptr, {whole(0), whole(1), whole(2)}, hosts, bytes_per_s, latency,
                                 policy);
  } else
    refuse("no network is named " + kind);
  zone->seal();
  if (kind != "dragonfly" || whole(0) < 2)
    return;
  int found = 0;
  for (auto* link : sg::Engine::get_instance()->get_all_links())
    if (link->get_name().find("blue") != std::string::npos) {
      link->set_bandwidth(shape.at(3) * 1e9);
      found++;
    }
  if (found == 0)
    refuse("this version of SimGrid names the links between groups otherwise");
}

int main(int argc, char** argv)
{
  sg::Engine engine(&argc, argv);
  sg::Engine::set_config("network/model:CM02");
  sg::Engine::set_config("network/crosstraffic:0");
  sg::Engine::set_config("network/TCP-gamma:0");
  const auto kind = next<std::string>("a network");
  std::vector<double> shape(kind == "dragonfly" ? 4 : 3);
  for (auto& number : shape)
    number = next<double>("a number of the network");
  const long nodes      = next<long>("nodes");
  const double link     = next<double>("the speed of a link") * 1e9;
  const double latency  = next<double>("the latency of a link");
  Times times;
  times.start_up           = next<double>("the start-up");
  times.inside_latency     = next<double>("the latency inside a node");
  times.inside_bytes_per_s = next<double>("the speed inside a node") * 1e9;
  const auto programs      = read_programs(nodes, next<long>("the ranks of a node"));
  if (kind == "loop")
    build_loop(shape, link, latency, programs);
  else
    build(kind, shape, link, latency);
  for (long node = 0; node < nodes; node++) {
    auto* host = sg::Host::by_name_or_null(std::to_string(node));
    if (host == nullptr)
      refuse("the network is too small for node " + std::to_string(node));
    sg::Actor::create(std::to_string(node), host, work, &programs[node], times);
  }
  engine.run();
  std::printf("%.12g\n", sg::Engine::get_clock());
  return 0;
}
