// How the messages of the kernel reach a widget.
//
// anywidget holds them back until the module of the widget is loaded. If that takes longer than two seconds, it
// rejects them all, the later ones too: the widget would keep the state that it had at first.

/** @import { Message, Model } from "./model" */

/** @type {Message} */
const NO_CHANGE = { content: { data: { method: "none" } } };

/**
 * If messages are rejected, receives them without anywidget, and asks the kernel for the state.
 * @param {Model} model
 */
export async function receive(model) {
  const widget = await model.widget_manager?.get_model(model.get("own_id"));
  if (!widget?.comm) return; // there is no kernel
  try {
    await widget._handle_comm_msg(NO_CHANGE);
  } catch {
    const { _handle_comm_msg: handle } = Object.getPrototypeOf(Object.getPrototypeOf(widget)); // of ipywidgets
    widget.comm.on_msg((message) => handle.call(widget, message));
    widget.comm.send({ method: "request_state" }, {});
  }
}
