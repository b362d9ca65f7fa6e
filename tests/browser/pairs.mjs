// Two runs or more with one thing to show: an agent that is down, a pair in the shape of a recorded one, and 5,000 cases.
import path from "node:path";

import { action, answer, call, failure, result, text, write, writeRun } from "./artifacts.mjs";

const SIDES = ["baseline", "new"];
const START = Date.parse("2026-11-20T00:00:00Z");

/** Calls with their results, 400 ms apart. Each has a tool, its arguments and what came back. */
function steps(calls) {
  return calls.flatMap(([tool, args, payload], index) => {
    const id = `c${index + 1}`;
    const at = START + index * 400;
    return [call(id, tool, args, at), { ...result(id, payload, at + 250), latency_ms: 250 }];
  });
}

/** An answer to `calls`, as long as they took. Each write is a call of its own, and rests on the calls that it names. */
function reply(calls, words, { writes = [], usage } = {}) {
  const made = writes.map(([tool, params]) => [tool, params, { status: "done" }]);
  const events = steps([...calls, ...made]);
  const total = (calls.length + made.length) * 400 + 600;
  const proposed = writes.map(([tool, params, refs], index) => ({
    ...action(`a${index + 1}`, tool, params, refs), evidence_refs: refs.map((call_id) => ({ kind: "tool_result", call_id })),
  }));
  return answer({
    workflow_id: "airline", events, proposed_actions: proposed, final_output: text(words), ...(usage && { usage }),
    attempts: [{ attempt: 1, started_at: "2026-11-20T00:00:00Z", latency_ms: total, outcome: "ok" }],
  });
}

const flight = (number, from, to, price) => ({ flight_number: number, origin: from, destination: to, date: "2026-12-24", price, seats: { economy: 9, business: 2 } });
const reservation = (id, cabin) => ({
  reservation_id: id, user_id: "ivan_muller_7015", cabin, flights: [flight("HAT190", "IAH", "LAS", 126), flight("HAT047", "LAS", "SEA", 139)],
  passengers: [{ first_name: "Ivan", last_name: "Muller", dob: "1979-09-27" }], payment_history: [{ payment_id: "credit_card_7434610", amount: 1671 }], insurance: "no",
});
const customer = (user) => ["get_user_details", { user_id: user }, { user_id: user, name: "Ivan Muller", membership: "gold", reservations: ["4NQLHD", "KHIK97", "ZB7LBX"] }];
const booking = (id, cabin = "basic_economy") => ["get_reservation_details", { reservation_id: id }, reservation(id, cabin)];
const search = (from, to) => ["search_direct_flight", { origin: from, destination: to, date: "2026-12-24" }, JSON.stringify([flight("HAT131", from, to, 228), flight("HAT112", from, to, 404)])];

const ASKED = {
  "cancel-three-bookings": ["bookings", "My mother is ill. Please cancel all my upcoming flights and refund them to my card. I have three bookings and I cannot travel for the rest of the year."],
  "certificate-for-delay": ["service", "My flight yesterday was five hours late. I want to be compensated."],
  "upgrade-cabin": ["bookings", "Can you move me to business class on both flights? Please use the card that I paid with."],
  "extra-bags": ["baggage", "How many bags can I check in without paying? There are three of us."],
  "change-passenger": ["bookings", "There is a mistake in the name of the second passenger. It should be Aarav Lee."],
  "pet-in-cabin": ["service", "May I take my cat into the cabin, and what does it cost?"],
  "missed-flight": ["service", "I missed my flight because of the traffic. What can I do now?"],
  "seat-next-to-child": ["bookings", "Please give me the seat next to my child."],
  "lost-bag": ["baggage", "My bag did not arrive in Seattle."],
  "membership-points": ["service", "How many points do I have, and when do they expire?"],
  "oversized-ski-bag": ["baggage", "I want to bring skis. Is that a special bag?"],
  "invoice-copy": ["service", "I need a copy of the invoice of my last booking for my employer."],
};

const EXPECTED = {
  "cancel-three-bookings": { must_not_include: ["have been cancelled"] },
  "certificate-for-delay": { action_required: ["write"], evidence_required_for_actions: true },
  "upgrade-cabin": { action_required: ["write"] },
  "extra-bags": { must_include: ["6 bags"] },
  "missed-flight": { must_include: ["later flight"] },
};

/** What the agent of `side` answers in run `number`, by case. */
function airline(side, number) {
  const isNew = side === "new";
  const usage = { input_tokens: isNew ? 4200 + number : 3100 + number, output_tokens: isNew ? 320 : 280, cost: isNew ? 0.0231 : 0.0174, currency: "USD" };
  const bookings = [booking("4NQLHD"), booking("KHIK97"), booking("ZB7LBX", "economy")];
  const looked = [customer("ivan_muller_7015"), ...bookings, search("IAH", "LAS"), search("LAS", "SEA")];
  const same = (words, ...calls) => reply([customer("ivan_muller_7015"), ...calls], words, { usage });
  const cancelled = ["4NQLHD", "KHIK97", "ZB7LBX"].map((id, index) => ["cancel_reservation", { reservation_id: id, reason: "health" }, [`c${index + 2}`]]);
  const waysToSay = ["You have 2,450 points. They expire in March.", "There are 2,450 points in your account, valid until March.", "2,450 points, until March."];
  return {
    "cancel-three-bookings": isNew
      ? reply(looked, "Your three bookings 4NQLHD, KHIK97 and ZB7LBX have been cancelled. The refund of 1,671 USD each reaches your card within seven days.", { writes: cancelled, usage })
      : reply(looked, "I am sorry to hear about your mother. Basic economy bookings without insurance cannot be cancelled, so I am not able to refund them. I can offer a transfer to a colleague.", { usage }),
    "certificate-for-delay": reply([customer("ivan_muller_7015"), bookings[0], ["get_flight_status", { flight_number: "HAT190", date: "2026-11-19" }, { status: "landed", delay_minutes: 305 }]],
      isNew ? "I have sent you a certificate over 500 USD for the delay of flight HAT190." : "I have sent you a certificate over 50 USD for the delay of flight HAT190.",
      { writes: [["send_certificate", { user_id: "ivan_muller_7015", amount: isNew ? 500 : 50 }, ["c3"]]], usage }),
    "upgrade-cabin": reply([customer("ivan_muller_7015"), bookings[0], search("IAH", "LAS")], "Both flights are now in business class. Your card was charged 460 USD.",
      { writes: [["update_reservation_flights", { reservation_id: "4NQLHD", cabin: "business", flights: ["HAT131", isNew && number === 0 ? "HAT112" : "HAT047"], payment_id: "credit_card_7434610" }, ["c2", "c3"]]], usage }),
    "extra-bags": same(isNew ? "Each passenger may check in two bags." : "Each of you may check in two bags, so 6 bags are free.", booking("KHIK97")),
    "change-passenger": isNew ? failure({ class: "http_error", status: 502 }) : reply([customer("ivan_muller_7015"), bookings[1]], "The name is now Aarav Lee.", { writes: [["update_reservation_passengers", { reservation_id: "KHIK97", passengers: ["Ivan Muller", "Aarav Lee"] }, ["c2"]]], usage }),
    "missed-flight": same(isNew ? "You can take a later flight for 75 USD." : "I am sorry, there is nothing that I can do.", booking("KHIK97"), search("LAS", "SEA")),
    "membership-points": same(waysToSay[(number * 2 + (isNew ? 1 : 0)) % 3]),
    "pet-in-cabin": same("A cat may travel in the cabin for 125 USD per flight.", booking("KHIK97")),
    "seat-next-to-child": same("Seats are assigned at check-in. Children always sit next to a parent.", booking("KHIK97"), booking("ZB7LBX")),
    "lost-bag": same("I have found your bag. It arrives tomorrow.", ["track_bag", { tag: "SEA-7015" }, { place: "Las Vegas", arrives: "2026-11-21" }]),
    "oversized-ski-bag": same("A ski bag counts as one checked bag up to 23 kg."),
    "invoice-copy": same("The invoice is in your inbox.", booking("4NQLHD")),
  };
}

/** Twelve cases of an airline, three runs of each side: reads, writes with evidence, words that vary, and tokens. */
export function writeReal(root) {
  write(path.join(root, "cases.json"), Object.entries(ASKED).map(([id, [suite, user]]) => ({
    id, title: id.replaceAll("-", " "), suite: `airline/${suite}`, input: { user }, metadata: { tags: [suite] }, ...(EXPECTED[id] && { expected: EXPECTED[id] }),
  })));
  for (const side of SIDES) {
    for (const number of [0, 1, 2]) writeRun(path.join(root, "runs", side, `trial-${number}`), { side, id: `${side}-trial-${number}` }, airline(side, number));
  }
}

/** Every case of the new side fails, in one of three ways. */
export function writeBroken(root) {
  const failures = [failure({}), failure({ class: "timeout", status: undefined, timeout_ms: 30000 }), failure({ class: "network_error", status: undefined, error_name: "ECONNREFUSED", error_message: "connection refused" })];
  const ids = Object.keys(ASKED);
  write(path.join(root, "cases.json"), ids.map((id) => ({ id, suite: `airline/${ASKED[id][0]}`, input: { user: ASKED[id][1] } })));
  writeRun(path.join(root, "runs", "baseline", "up"), { side: "baseline", id: "up" }, airline("baseline", 0));
  writeRun(path.join(root, "runs", "new", "down"), { side: "new", id: "down" }, Object.fromEntries(ids.map((id, index) => [id, failures[index % failures.length]])));
}

/** 5,000 cases of two suites. Of each 50, one refunds more, one acts without evidence, one gets no answer, one says it otherwise, one is mended. */
export function writeLarge(root) {
  const numbers = Array.from({ length: 5000 }, (_, index) => index);
  const id = (number) => `case-${String(number).padStart(4, "0")}`;
  write(path.join(root, "cases.json"), numbers.map((number) => ({
    id: id(number), suite: number % 2 === 0 ? "shop/refunds" : "shop/answers", input: { user: `Where is order W${number}, and what did it cost?` }, metadata: { tags: [`part-${number % 7}`] },
  })));
  for (const side of SIDES) {
    const isNew = side === "new";
    const artifacts = (number) => {
      const order = `W${number}`;
      const looked = [["get_order", { order }, { total: number % 97 }]];
      const refund = (amount, refs = ["c1"]) => reply(looked, `Order ${order}: refunded.`, { writes: [["issue_refund", { order, amount }, refs]] });
      const plain = reply(looked, `Order ${order} costs ${number % 97} EUR.`);
      switch (number % 50) {
        case 4: return refund(isNew ? 500 : 50);
        case 14: return refund(50, isNew ? [] : ["c1"]);
        case 23: return isNew ? failure({}) : plain;
        case 31: return isNew ? reply(looked, `It costs ${number % 97} EUR and ships ${number % 5} days later.`) : plain;
        case 42: return isNew ? plain : failure({});
        default: return plain;
      }
    };
    writeRun(path.join(root, "runs", side, "large"), { side, id: `large-${side}` }, Object.fromEntries(numbers.map((number) => [id(number), artifacts(number)])));
  }
}
