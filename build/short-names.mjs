/**
 * Long names of properties that nobody but our own code reads become short ones, the same in `/widget.js` and its chunks
 * (0.9 kB on the wire). A name may stand here if it is ours, lit's or marked's alone: no name of the DOM, of the wire, of what is
 * stored or exported, of the element's public members or of what a chunk exports, and never written as a text. A test holds it.
 */

import { build } from "esbuild";

const NAMES = {
  /** Methods, hooks and fields of lit's elements, controllers and templates. */
  lit: `addController createProperty createRenderRoot creationScope elementStyles enableUpdating finalize finalizeStyles
    fromAttribute getPropertyDescriptor getPropertyOptions getUpdateComplete hasUpdated hostConnected
    hostDisconnected hostUpdate hostUpdated isUpdatePending performUpdate renderOptions requestUpdate scheduleUpdate
    render shadowRootOptions toAttribute willUpdate`,
  /** Of marked's lexer and tokenizer. */
  marked: `autolink blockTokens codeBlockStyle emStrong escaped fences inLink inRawBlock infiniteLoopError inlineQueue
    inlineText inlineTokens lastPossibleDelCloserIndex lastPossibleEmStrongCloserIndex lexer lheading linkEmitted
    linkInText linkParenPossible maskedSrc tokenizer`,
  ours: `addFiles announcements announcer answerWithin beforeToggle busy canEdit canForgetKey canRepeat canReset canRetry
    canSend changeReply checkingKey childrenOf client draftChanged dragLeave dragOver dropReply endNode expectReply following giveKey
    givenKey inlinePieces inOurWords interrupt isAskedForBy isCopied isDark isGiven isLost isOffline isOpen isOpenWhile
    isQueued isReading isRestoring isSilent isSkipped isTyped judgeError keeper lastQuestion lastReply lastToken outgoing
    putBefore redial redraw restored restoring retryAfresh retryIn rewind rewindReply sayLines sending settle settledCount
    startNode stateFor stopTools submitKey succeeded takeUp toggleTheme undrawn unsent wantsLauncher withdraw`,
};

export const shortened = Object.values(NAMES).flatMap((names) => names.split(/\s+/));

/** These, lit's `_$AH` and the like, and our callbacks: the DOM writes its own in small letters, but for `navigator.onLine`. */
export const shortNames = {
  mangleProps: new RegExp(`^(?:on[A-Z].*|_\\$[A-Z].*|${shortened.join("|")})$`),
  reserveProps: /^onLine$/,
};

/** Gives each a short name that is no other property's in any of the files: `mangleCache` for each build of them. */
export async function giveShortNames(entryPoints) {
  const { mangleCache } = await build({
    ...shortNames,
    entryPoints,
    mangleCache: {},
    bundle: true,
    write: false,
    outdir: "dist",
    format: "esm",
    logLevel: "error",
  });
  return mangleCache;
}
