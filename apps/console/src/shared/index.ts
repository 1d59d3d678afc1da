export { Dialog } from "./Dialog";
export { Field } from "./Field";
export { Cost, Quantity, quantity } from "./Quantity";
export { Empty, Failure, Loading, Rows } from "./states";
export { useKeys } from "./keys";
export { ChosenUser, UserPicker } from "./UserPicker";
export { Moment } from "./Moment";
export { VirtualList } from "./VirtualList";
