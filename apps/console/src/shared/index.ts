export { Dialog } from "./Dialog";
export { Field } from "./Field";
export { Cost, Quantity } from "./Quantity";
export { Empty, Failure, Loading, Rows } from "./states";
export { Moment } from "./Moment";
export { VirtualList } from "./VirtualList";
