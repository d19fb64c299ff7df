export function writeProfiles(folder: string): string;
