import { expect, test } from "vitest";

import { receive } from "./receiving.js";

/** @import { Message, Model } from "./model" */

/** @type {Message} */
const MESSAGE = { content: { data: { method: "update" } } };

class OfIpywidgets {
  /** @type {unknown[]} */
  calls = [];
  comm = {
    on_msg: (/** @type {(message: Message) => unknown} */ handle) => void this.calls.push(handle(MESSAGE)),
    send: (/** @type {object} */ data) => void this.calls.push(data),
  };
  async _handle_comm_msg(/** @type {Message} */ message) {
    return this.calls.push(message);
  }
}

class Rejecting extends OfIpywidgets {
  /** @returns {Promise<number>} */
  async _handle_comm_msg() {
    throw new Error("failed to initialize");
  }
}

class Accepting extends OfIpywidgets {}

/** @param {object | undefined} widget_manager */
const modelOf = (widget_manager) => /** @type {Model} */ (/** @type {unknown} */ ({ get: (/** @type {string} */ name) => name, widget_manager }));

/** @param {OfIpywidgets} widget */
const managed = (widget) => modelOf({ get_model: async (/** @type {string} */ id) => (id === "own_id" ? widget : undefined) });

test("messages that are rejected are received without anywidget, and the state is asked for", async () => {
  const widget = new Rejecting();
  await receive(managed(widget));
  expect(widget.calls).toEqual([MESSAGE, expect.any(Promise), { method: "request_state" }]);
});

test("nothing is changed where messages arrive", async () => {
  const widget = new Accepting();
  await receive(managed(widget));
  expect(widget.calls).toEqual([{ content: { data: { method: "none" } } }]);
});

test("without a kernel nothing is received", async () => {
  await receive(modelOf(undefined));
  await receive(modelOf({ get_model: async () => ({}) }));
});
